// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <tuple>

#include <lockstep/nn/detail/binary_operation.hpp>
#include <lockstep/nn/dropout.hpp>
#include <lockstep/nn/sequence.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// z = x + y elementwise: a residual connection. LayerNorm takes a second input for one that is normalised at once.
/// @determinism bitwise, for any number of threads
/// @throws ShapeError when the shapes differ
template <class Context, int Rank>
[[nodiscard]] Variable<typename Context::Scalar, Rank, typename Context::Space> add(
    Context& context, Variable<typename Context::Scalar, Rank, typename Context::Space> x,
    Variable<typename Context::Scalar, Rank, typename Context::Space> y) {
  detail::BinaryOperation<kernel::Plus, Context, Rank> const made(context, "add", x, y);
  context.on_backward(made.output(), std::tuple{}, [made](Context& c) { made.backward(c); });
  return made.output();
}
template <class Context>
[[nodiscard]] Sequence<typename Context::Scalar, typename Context::Space> add(
    Context& context, Sequence<typename Context::Scalar, typename Context::Space> const& x,
    Sequence<typename Context::Scalar, typename Context::Space> const& y) {
  return x.with(add(context, x.tokens, y.tokens));
}
/// z = x + dropout(y): the residual connection around a part of a transformer.
template <class Context>
[[nodiscard]] Sequence<typename Context::Scalar, typename Context::Space> add(
    Context& context, Sequence<typename Context::Scalar, typename Context::Space> const& x,
    Sequence<typename Context::Scalar, typename Context::Space> const& y, Dropout const& dropout) {
  return add(context, x, dropout.forward(context, y));
}

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
