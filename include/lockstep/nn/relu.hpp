// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <tuple>

#include <lockstep/kernel/relu.hpp>
#include <lockstep/nn/context.hpp>
#include <lockstep/nn/sequence.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// y = max(0, x) elementwise; backward sees y, so nothing is kept for it.
/// @determinism bitwise, for any number of threads
template <class Context>
[[nodiscard]] typename Context::template Variable<2> relu(Context& context, typename Context::template Variable<2> x) {
  using Scalar = typename Context::Scalar;
  using Kernel = kernel::Relu<typename Context::Space>;
  auto y = context.template variable<2>(x.value.extent);
  Extents<1> const flat{x.value.size()};
  Kernel::template forward<Scalar>(context.stream(), x.value.reshape(flat), y.value.reshape(flat));
  context.on_backward(y, std::tuple{}, [x, y, flat](Context& c) {
    if (auto const dx = c.gradient(x))
      Kernel::template backward<Scalar>(c.stream(), y.gradient().reshape(flat), y.value.reshape(flat), {dx.data, flat},
                                        dx.write);
  });
  return y;
}
template <class Context>
[[nodiscard]] Sequence<typename Context::Scalar, typename Context::Space> relu(
    Context& context, Sequence<typename Context::Scalar, typename Context::Space> const& x) {
  return x.with(relu(context, x.tokens));
}

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
