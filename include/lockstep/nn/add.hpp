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
template <class Context>
[[nodiscard]] typename Context::template Variable<2> add(Context& context, typename Context::template Variable<2> x,
                                                         typename Context::template Variable<2> y) {
  detail::BinaryOperation<kernel::Plus, Context> const made(context, "add", x, y);
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
