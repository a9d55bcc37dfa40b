// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <tuple>

#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/elementwise/detail/binary_operation.hpp>
#include <lockstep/nn/elementwise/detail/row_broadcast.hpp>
#include <lockstep/nn/random/dropout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Elementwise z = x + y: a residual connection. LayerNorm can add a second input itself if the sum is normalized at
/// once.
/// @determinism bitwise, for any number of threads
/// @throws ShapeError if the shapes differ
template <class Context, int Rank>
[[nodiscard]] VariableOf<Context, Rank> add(Context& context, VariableOf<Context, Rank> x,
                                            VariableOf<Context, Rank> y) {
  detail::BinaryOperation<kernel::Plus, Context, Rank> const operation(context, "add", x, y);
  context.on_backward(operation.output(), std::tuple{}, [operation](Context& c) { operation.backward(c); });
  return operation.output();
}
/// Adds two sequences of equal lengths, slot by slot.
template <class Context>
[[nodiscard]] SequenceOf<Context> add(Context& context, SequenceOf<Context> const& x, SequenceOf<Context> const& y) {
  return x.with(add(context, x.tokens, y.tokens));
}
/// Returns z = x + dropout(y): the residual connection around a part of a transformer.
template <class Context>
[[nodiscard]] SequenceOf<Context> add(Context& context, SequenceOf<Context> const& x, SequenceOf<Context> const& y,
                                      Dropout const& dropout) {
  return add(context, x, dropout.forward(context, y));
}

/// Adds to every token the row of its sequence: z[s, c] = x[s, c] + row[r, c] for the slots s of sequence r. The row
/// can hold features of the whole sample. The gradient of a row is the sum over its tokens.
/// @shape x [slots, width]   @shape row [rows, width]   @shape returns as x
/// @determinism bitwise, for any number of threads
/// @throws ShapeError if row does not have one row per sequence and the channels of x
template <class Context>
[[nodiscard]] SequenceOf<Context> add(Context& context, SequenceOf<Context> const& x, VariableOf<Context, 2> row) {
  detail::RowBroadcast<kernel::Plus, Context> const operation(context, "add: the row to add is", x, row);
  context.on_backward(operation.output().tokens, std::tuple{}, [operation](Context& c) { operation.backward(c); });
  return operation.output();
}
/// Adds to every pixel, voxel or time step the row of its sample, for example the embedded time step of a diffusion
/// model.
/// @shape x [rows, extent…, channels]   @shape row [rows, channels]   @shape returns as x
template <class Context, int Rank>
requires(Rank > 2) [[nodiscard]] VariableOf<Context, Rank> add(Context& context, VariableOf<Context, Rank> x,
                                                               VariableOf<Context, 2> row) {
  return add(context, detail::as_tokens(x), row).tokens.reshape(x.value.extent);
}

/// Rejects other operands at compile time and explains what can be added.
template <class Context, class Scalar, int Rank, int Other, class Space>
requires(Rank != Other &&
         !(Rank > 2 && Other == 2)) Variable<Scalar, Rank, Space> add(Context&, Variable<Scalar, Rank, Space> const& x,
                                                                      Variable<Scalar, Other, Space> const&) {
  static_assert(sizeof(Context) == 0,
                "Lockstep: nn::add takes two activations of one shape, or a Sequence or an image and, second, a "
                "Variable [rows, channels]");
  return x;
}
/// Rejects a Sequence in second place at compile time.
template <class Context, class Scalar, int Rank, class Space>
Variable<Scalar, Rank, Space> add(Context&, Variable<Scalar, Rank, Space> const& x, Sequence<Scalar, Space> const&) {
  static_assert(sizeof(Context) == 0,
                "Lockstep: nn::add takes the Sequence first and the addend of its tokens second; to add two "
                "activations of the same tokens write nn::add(context, x.tokens, y.tokens)");
  return x;
}
/// Rejects other second operands of a Sequence at compile time.
template <class Context, class Scalar, int Rank, class Space>
requires(Rank != 2) Sequence<Scalar, Space> add(Context&, Sequence<Scalar, Space> const& x,
                                                Variable<Scalar, Rank, Space> const&) {
  static_assert(sizeof(Context) == 0,
                "Lockstep: nn::add takes a Sequence and, second, another or a Variable [rows, channels]");
  return x;
}

/// Rejects calls without the context in front, or with arguments that are no activations, at compile time.
template <class... Arguments>
requires(!detail::takes_activations<2, Arguments...>) auto add(Arguments const&... arguments) {
  return detail::reject_call(arguments...);
}

}}}  // namespace lockstep::nn
