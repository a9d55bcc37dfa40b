// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <type_traits>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/sequence_layout.hpp>
#include <lockstep/nn/autograd/variable.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

using kernel::SequenceLayout;

/// Activations of a batch of sequences: one vector per slot, padded or ragged according to the layout. Values in
/// padding slots are finite, and layers that mix tokens never read them. Their gradient is zero.
template <class Scalar, class Space>
struct Sequence {
  Variable<Scalar, 2, Space> tokens;  ///< [layout.slots, width]
  SequenceLayout<Space> layout;       ///< which slots belong to which sequence

  /// Returns the number of channels.
  [[nodiscard]] Index width() const noexcept { return tokens.extent(1); }
  /// Returns another activation with this layout.
  /// @throws ShapeError unless it has as many rows as the layout has slots
  [[nodiscard]] Sequence with(Variable<Scalar, 2, Space> other) const {
    expect<ShapeError>(other.extent(0) == layout.slots, [&] {
      return "Sequence::with: " + std::to_string(other.extent(0)) + " rows for a layout with " +
             std::to_string(layout.slots) + " slots; give it one row for each token, padding included";
    });
    return {other, layout};
  }
};

/// Sequence of a context's element type in its space: the input and output type of layers over tokens.
template <class Context>
using SequenceOf = Sequence<typename Context::Scalar, typename Context::Space>;

namespace detail {

/// Returns each row of a matrix as a sequence of one token, or each image as a sequence of its pixels. Dropout needs
/// positions.
template <class Scalar, int Rank, class Space>
[[nodiscard]] Sequence<Scalar, Space> as_tokens(Variable<Scalar, Rank, Space> const& x,
                                                TensorView<Index const, 1, Space> positions = {}) {
  auto const tokens = x.as_rows();
  auto const rows = x.extent(0), slots = tokens.extent(0);
  return {tokens, {.rows = rows, .slots = slots, .length = rows > 0 ? slots / rows : 0, .positions = positions}};
}

}  // namespace detail

/// Rejects the operator at compile time: the message names nn::add.
template <class Scalar, class Space>
Sequence<Scalar, Space> operator+(Sequence<Scalar, Space> const& x, Sequence<Scalar, Space> const&) {
  static_assert(!std::is_same_v<Scalar, Scalar>, "Lockstep: activations are added by nn::add(context, x, y)");
  return x;
}
/// Rejects the operator at compile time: the message names nn::subtract.
template <class Scalar, class Space>
Sequence<Scalar, Space> operator-(Sequence<Scalar, Space> const& x, Sequence<Scalar, Space> const&) {
  static_assert(!std::is_same_v<Scalar, Scalar>, "Lockstep: activations are subtracted by nn::subtract(context, x, y)");
  return x;
}
/// Rejects the operator at compile time: the message names nn::multiply.
template <class Scalar, class Space>
Sequence<Scalar, Space> operator*(Sequence<Scalar, Space> const& x, Sequence<Scalar, Space> const&) {
  static_assert(!std::is_same_v<Scalar, Scalar>, "Lockstep: activations are multiplied by nn::multiply(context, x, y)");
  return x;
}

/// Returns these sequences in another space, `Copy::Space`, without a gradient: each tensor is the result of
/// `copy(view)`.
template <class Scalar, class Space, class Copy>
[[nodiscard]] Sequence<Scalar, typename Copy::Space> copied(Sequence<Scalar, Space> const& x, Copy const& copy) {
  auto const& from = x.layout;
  return {copied(x.tokens, copy),
          {from.rows, from.slots, from.length, copy(from.lengths), copy(from.offsets), copy(from.positions)}};
}

}}}  // namespace lockstep::nn
