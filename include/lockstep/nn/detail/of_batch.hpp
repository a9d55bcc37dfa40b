// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <type_traits>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/nn/sequence.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn::detail {

template <class X>
inline constexpr bool is_tensor = false;
template <class T, int Rank, class Space>
inline constexpr bool is_tensor<TensorView<T, Rank, Space>> = true;

/// What a batch holds, where a layer takes what the context or another layer has made: a tensor, or a column.
template <class X>
concept OfBatch = is_tensor<X> || requires(X const& x) {
  x.values;
};

/// A batch as a whole, which a layer gets where a block's forward was taken for that of a model.
template <class X>
concept WholeBatch = requires(X const& x) {
  x.rows();
  x.positions();
};

/// Says so. Nothing is returned, as it does not compile.
template <class Variable, class X>
[[nodiscard]] Variable refuse_batch(X const&) {
  static_assert(!std::is_same_v<X, X>,
                "Lockstep: a layer takes a Variable, and this is a tensor or a column of a batch: "
                "context.input(column.values) makes one of it");
  return {};
}

/// What a layer makes: a Variable or a Sequence.
template <class X>
concept OfLayer = requires(X const& x) {
  x.value;
}
|| requires(X const& x) { x.tokens; };

/// What is no Sequence, where a layer over tokens takes one.
template <class X, class Context>
concept NotSequence = !std::is_convertible_v<X const&, SequenceOf<Context>>;

/// Says so. Nothing is returned, as it does not compile.
template <class Context, class X>
[[nodiscard]] SequenceOf<Context> require_sequence(X const&) {
  static_assert(!std::is_same_v<X, X>,
                "Lockstep: a layer over tokens takes a Sequence: nn::sequence_of makes one of a batch's column, "
                "nn::FusedEmbedding of ids, and nn::Conv1d of another");
  return {};
}

}  // namespace lockstep::inline LOCKSTEP_ABI::nn::detail
