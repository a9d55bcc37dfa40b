// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <tuple>

#include <lockstep/nn/detail/elementwise.hpp>
#include <lockstep/nn/sequence.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// y = tanh(x) elementwise; backward sees y, so nothing is kept for it.
/// @determinism bitwise, for any number of threads
template <class Context, int Rank>
[[nodiscard]] Variable<typename Context::Scalar, Rank, typename Context::Space> tanh(
    Context& context, Variable<typename Context::Scalar, Rank, typename Context::Space> x) {
  detail::Elementwise<kernel::Tanh, Context, Rank> const made(context, x);
  context.on_backward(made.output(), std::tuple{}, [made](Context& c) { made.backward(c); });
  return made.output();
}
template <class Context>
[[nodiscard]] Sequence<typename Context::Scalar, typename Context::Space> tanh(
    Context& context, Sequence<typename Context::Scalar, typename Context::Space> const& x) {
  return x.with(tanh(context, x.tokens));
}

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
