// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <type_traits>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/nn/autograd/sequence.hpp>

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
