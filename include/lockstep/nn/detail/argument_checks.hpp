// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <type_traits>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/memory/space.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/variable.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn::detail {

template <class Input>
inline constexpr bool is_tensor = false;
template <class Element, int Rank, class Space>
inline constexpr bool is_tensor<TensorView<Element, Rank, Space>> = true;

/// A batch's tensor or column, passed to a layer that needs an activation.
template <class Input>
concept BatchTensor = is_tensor<Input> || requires(Input const& x) {
  x.values;
};

/// A whole batch, passed to a layer because a block's forward was mistaken for a model's forward.
template <class Input>
concept WholeBatch = requires(Input const& x) {
  x.rows();
  x.positions();
};

/// Rejects a batch's tensor or column at compile time. Never returns.
template <class Variable, class Input>
[[nodiscard]] Variable reject_batch_tensor(Input const&) {
  static_assert(!std::is_same_v<Input, Input>,
                "Lockstep: a layer takes a Variable, and this is a tensor or a column of a batch: "
                "context.input(column.values) makes a Variable of it");
  return {};
}

/// Whether an argument is a context, the first argument of layers, activations and losses.
template <class First>
inline constexpr bool is_context = requires(First& context) {
  context.recording();
};
template <class First>
concept IsContext = is_context<First>;
template <class First>
concept NoContext = !is_context<First>;

/// Whether an argument is a Variable or a Sequence.
template <class Input>
inline constexpr bool is_activation = false;
template <class Scalar, int Rank, class Space>
inline constexpr bool is_activation<Variable<Scalar, Rank, Space>> = true;
template <class Scalar, class Space>
inline constexpr bool is_activation<Sequence<Scalar, Space>> = true;

/// Rejects a call without the context in front at compile time. Never returns.
template <class First>
[[nodiscard]] auto reject_call(First const& first) {
  static_assert(!std::is_same_v<First, First>,
                "Lockstep: layers, activations and losses take the context first: layer.forward(context, x), "
                "nn::gelu(context, x), nn::cross_entropy(context, logits, labels)");
  if constexpr (is_activation<First>)
    return first;
  else
    return Variable<float, 2, HostSpace>{};
}

/// A layer's result: a Variable or a Sequence.
template <class Input>
concept LayerOutput = requires(Input const& x) {
  x.value;
}
|| requires(Input const& x) { x.tokens; };

/// An argument that is no Sequence, passed to a layer over tokens.
template <class Input, class Context>
concept NotSequence = !std::is_convertible_v<Input const&, SequenceOf<Context>>;

/// Rejects an argument that is no Sequence at compile time. Never returns.
template <class Context, class Input>
[[nodiscard]] SequenceOf<Context> reject_non_sequence(Input const&) {
  static_assert(!std::is_same_v<Input, Input>,
                "Lockstep: a layer over tokens takes a Sequence: nn::sequence_of makes one of a batch's column, "
                "nn::FusedEmbedding of ids, and nn::Conv1d of another");
  return {};
}

}}}  // namespace lockstep::nn::detail
