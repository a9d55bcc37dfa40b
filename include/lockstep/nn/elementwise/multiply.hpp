// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <tuple>

#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/elementwise/detail/binary_operation.hpp>
#include <lockstep/nn/elementwise/detail/row_broadcast.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Elementwise z = x * y: a gate. Backward reads both sides, which may be the same variable.
/// @determinism bitwise, for any number of threads
/// @throws ShapeError if the shapes differ
template <class Context, int Rank>
[[nodiscard]] VariableOf<Context, Rank> multiply(Context& context, VariableOf<Context, Rank> x,
                                                 VariableOf<Context, Rank> y) {
  detail::BinaryOperation<kernel::Times, Context, Rank> const operation(context, "multiply", x, y);
  context.on_backward(operation.output(), std::tuple{}, [operation](Context& c) { operation.backward(c); });
  return operation.output();
}
/// Multiplies two sequences of equal lengths, slot by slot.
template <class Context>
[[nodiscard]] SequenceOf<Context> multiply(Context& context, SequenceOf<Context> const& x,
                                           SequenceOf<Context> const& y) {
  return x.with(multiply(context, x.tokens, y.tokens));
}

/// Multiplies every token by the factors of its sequence: z[s, c] = x[s, c] * factors[r, c] for the slots s of sequence
/// r. Use it with factors computed from nn::mean_pool.
/// @shape x [slots, width]   @shape factors [rows, width]   @shape returns as x
/// @determinism bitwise, for any number of threads
/// @throws ShapeError if the factors do not have one row per sequence and the channels of x
template <class Context>
[[nodiscard]] SequenceOf<Context> multiply(Context& context, SequenceOf<Context> const& x,
                                           VariableOf<Context, 2> factors) {
  detail::RowBroadcast<kernel::Times, Context> const operation(context, "multiply: the factors are", x, factors);
  context.on_backward(operation.output().tokens, std::tuple{}, [operation](Context& c) { operation.backward(c); });
  return operation.output();
}
/// Multiplies every pixel, voxel or time step by the factors of its row, channel by channel. With factors computed from
/// nn::global_average_pool this is squeeze and excitation.
/// @shape x [rows, extent…, channels]   @shape factors [rows, channels]   @shape returns as x
template <class Context, int Rank>
requires(Rank > 2) [[nodiscard]] VariableOf<Context, Rank> multiply(Context& context, VariableOf<Context, Rank> x,
                                                                    VariableOf<Context, 2> factors) {
  return multiply(context, detail::as_tokens(x), factors).tokens.reshape(x.value.extent);
}

/// Rejects calls without the context in front, or with arguments that are no activations, at compile time.
template <class... Arguments>
requires(!detail::takes_activations<2, Arguments...>) auto multiply(Arguments const&... arguments) {
  return detail::reject_call(arguments...);
}

}}}  // namespace lockstep::nn
