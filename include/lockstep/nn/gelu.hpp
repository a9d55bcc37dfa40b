// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <tuple>

#include <lockstep/kernel/gelu.hpp>
#include <lockstep/nn/context.hpp>
#include <lockstep/nn/sequence.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// y = x Phi(x) elementwise, Phi the integral of the standard normal distribution (exact, not the tanh formula). While
/// recording, forward also keeps the slopes; backward multiplies by them.
/// @determinism bitwise, for any number of threads
template <class Context>
[[nodiscard]] typename Context::template Variable<2> gelu(Context& context, typename Context::template Variable<2> x) {
  using Scalar = typename Context::Scalar;
  using Kernel = kernel::Gelu<typename Context::Space>;
  auto y = context.template variable<2>(x.value.extent);
  Extents<1> const flat{x.value.size()};
  if (!context.recording() || !x.slot) {
    Kernel::template forward<Scalar>(context.stream(), x.value.reshape(flat), y.value.reshape(flat));
    return y;
  }
  auto const slope = context.template temporary<Scalar>(flat);
  Kernel::template forward<Scalar>(context.stream(), x.value.reshape(flat), y.value.reshape(flat), slope);
  context.on_backward(y, std::tuple{}, [x, y, slope, flat](Context& c) {
    auto const dx = c.gradient(x);
    Kernel::template backward<Scalar>(c.stream(), y.gradient().reshape(flat), slope, {dx.data, flat}, dx.write);
  });
  return y;
}
template <class Context>
[[nodiscard]] Sequence<typename Context::Scalar, typename Context::Space> gelu(
    Context& context, Sequence<typename Context::Scalar, typename Context::Space> const& x) {
  return x.with(gelu(context, x.tokens));
}

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
