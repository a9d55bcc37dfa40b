// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <tuple>

#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/elementwise/detail/binary_operation.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Elementwise z = x - y. For a gate between two states use y + gate * (x - y), which needs one multiplication.
/// @determinism bitwise, for any number of threads
/// @throws ShapeError if the shapes differ
template <class Context, int Rank>
[[nodiscard]] VariableOf<Context, Rank> subtract(Context& context, VariableOf<Context, Rank> x,
                                                 VariableOf<Context, Rank> y) {
  detail::BinaryOperation<kernel::Minus, Context, Rank> const operation(context, "subtract", x, y);
  context.on_backward(operation.output(), std::tuple{}, [operation](Context& c) { operation.backward(c); });
  return operation.output();
}
/// Subtracts two sequences of equal lengths, slot by slot.
template <class Context>
[[nodiscard]] SequenceOf<Context> subtract(Context& context, SequenceOf<Context> const& x,
                                           SequenceOf<Context> const& y) {
  return x.with(subtract(context, x.tokens, y.tokens));
}

/// Rejects calls without the context in front, or with arguments that are no activations, at compile time.
template <class... Arguments>
requires(!detail::takes_activations<2, Arguments...>) auto subtract(Arguments const&... arguments) {
  return detail::reject_call(arguments...);
}

}}}  // namespace lockstep::nn
