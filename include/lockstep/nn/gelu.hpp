// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <tuple>

#include <lockstep/kernel/gelu.hpp>
#include <lockstep/nn/context.hpp>
#include <lockstep/nn/sequence.hpp>
#include <lockstep/nn/staging.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// y = x Phi(x) elementwise, Phi the integral of the standard normal distribution (exact, not the tanh formula). While
/// recording, forward also keeps the slopes; backward multiplies by them.
/// @determinism bitwise, for any number of threads
template <class Context, int Rank>
[[nodiscard]] VariableOf<Context, Rank> gelu(Context& context, VariableOf<Context, Rank> x) {
  using Operand = nn::Operand<Context>;
  using Kernel = kernel::Gelu<typename Context::Space>;
  auto y = context.template variable<Rank>(x.value.extent);
  Extents<1> const flat{x.value.size()};
  Staging work(context);
  auto const from = work.read(x.value).reshape(flat);
  auto const to = work.write(y.value).reshape(flat);
  if (!context.recording() || !x.slot) {
    Kernel::template forward<Operand>(context.stream(), from, to);
    return y;
  }
  auto const slope = context.template temporary<typename Context::Scalar>(flat);
  Kernel::template forward<Operand>(context.stream(), from, to, work.write(slope));
  context.on_backward(y, std::tuple{}, [x, y, slope, flat](Context& c) {
    Staging back(c);
    auto const dy = back.read(y.gradient()).reshape(flat);
    auto const dx = back.gradient(x);
    Kernel::template backward<Operand>(c.stream(), dy, back.read(slope), {dx.data, flat}, dx.write);
  });
  return y;
}
template <class Context>
[[nodiscard]] SequenceOf<Context> gelu(Context& context, SequenceOf<Context> const& x) {
  return x.with(gelu(context, x.tokens));
}

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
