// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <tuple>

#include <lockstep/kernel/relu.hpp>
#include <lockstep/nn/context.hpp>
#include <lockstep/nn/sequence.hpp>
#include <lockstep/nn/staging.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// y = max(0, x) elementwise; backward sees y, so nothing is kept for it.
/// @determinism bitwise, for any number of threads
template <class Context>
[[nodiscard]] typename Context::template Variable<2> relu(Context& context, typename Context::template Variable<2> x) {
  using Operand = nn::Operand<Context>;
  using Kernel = kernel::Relu<typename Context::Space>;
  auto y = context.template variable<2>(x.value.extent);
  Extents<1> const flat{x.value.size()};
  Staging work(context);
  Kernel::template forward<Operand>(context.stream(), work.read(x.value).reshape(flat),
                                    work.write(y.value).reshape(flat));
  context.on_backward(y, std::tuple{}, [x, y, flat](Context& c) {
    Staging back(c);
    if (auto const dx = back.gradient(x))
      Kernel::template backward<Operand>(c.stream(), back.read(y.gradient()).reshape(flat),
                                         back.read(y.value).reshape(flat), {dx.data, flat}, dx.write);
  });
  return y;
}
template <class Context>
[[nodiscard]] Sequence<typename Context::Scalar, typename Context::Space> relu(
    Context& context, Sequence<typename Context::Scalar, typename Context::Space> const& x) {
  return x.with(relu(context, x.tokens));
}

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
