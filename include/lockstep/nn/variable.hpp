// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <string>
#include <type_traits>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/tensor_view.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// The gradient of one activation: memory is taken when the first consumer's backward asks for it, and given back when
/// the last of its producers' backward has read it. So is the activation's own: its consumers have run by then.
template <class Scalar>
struct GradientSlot {
  Scalar* data = nullptr;
  Index size = 0;
  Scalar* reserved = nullptr;  // memory to take instead, where it must outlive what is taken later
  int producers = 0;           // closures that have yet to read it
  bool passed_on = false;      // its memory is another gradient's now
  Scalar* value = nullptr;     // the activation, while its memory is its own
  int maker = -1;              // what makes the activation again where it was set aside
};

/// What a layer takes and returns: a value and, while recording, the slot where its consumers leave its gradient.
/// A null slot means that no gradient flows there (inputs, evaluation).
template <class Scalar, int Rank, class Space>
struct Variable {
  TensorView<Scalar, Rank, Space> value;
  GradientSlot<Scalar>* slot = nullptr;

  [[nodiscard]] Index extent(int axis) const noexcept { return value.extent[static_cast<std::size_t>(axis)]; }
  /// The same tensor, value and gradient, under other extents of equal size.
  /// @throws ShapeError for another number of elements
  template <std::size_t R>
  [[nodiscard]] Variable<Scalar, static_cast<int>(R), Space> reshape(std::array<Index, R> extent) const {
    expect<ShapeError>(elements(extent) == value.size(), [&] {
      return "reshape: " + to_string(value.extent) + " to " + to_string(extent) + "; both must have as many elements";
    });
    return {value.reshape(extent), slot};
  }
  /// The same tensor as a matrix: a row for each place of a picture, a clip or a series, its channels beside each
  /// other.
  [[nodiscard]] Variable<Scalar, 2, Space> as_rows() const {
    Index rows = 1;
    for (int axis = 0; axis < Rank - 1; ++axis) rows *= extent(axis);
    return reshape(std::array<Index, 2>{rows, extent(Rank - 1)});
  }
  /// Whether it is the same activation, perhaps under other extents. One of no elements may share its memory with
  /// others.
  template <int R>
  [[nodiscard]] bool is(Variable<Scalar, R, Space> const& other) const noexcept {
    return value.data == other.value.data && slot == other.slot;
  }
  /// In a backward closure: the gradient of this layer's output, complete.
  [[nodiscard]] TensorView<Scalar const, Rank, Space> gradient() const noexcept { return {slot->data, value.extent}; }
};

/// What layers take and return in a context: its element type, in its space.
template <class Context, int Rank>
using VariableOf = Variable<typename Context::Scalar, Rank, typename Context::Space>;

/// Says how activations are added, subtracted and multiplied.
template <class Scalar, int Rank, class Space>
Variable<Scalar, Rank, Space> operator+(Variable<Scalar, Rank, Space> const& x, Variable<Scalar, Rank, Space> const&) {
  static_assert(!std::is_same_v<Scalar, Scalar>, "Lockstep: activations are added by nn::add(context, x, y)");
  return x;
}
template <class Scalar, int Rank, class Space>
Variable<Scalar, Rank, Space> operator-(Variable<Scalar, Rank, Space> const& x, Variable<Scalar, Rank, Space> const&) {
  static_assert(!std::is_same_v<Scalar, Scalar>, "Lockstep: activations are subtracted by nn::subtract(context, x, y)");
  return x;
}
template <class Scalar, int Rank, class Space>
Variable<Scalar, Rank, Space> operator*(Variable<Scalar, Rank, Space> const& x, Variable<Scalar, Rank, Space> const&) {
  static_assert(!std::is_same_v<Scalar, Scalar>, "Lockstep: activations are multiplied by nn::multiply(context, x, y)");
  return x;
}

/// The same tensor in another space, `Move::Space`, without a gradient: what `move(view)` gives.
template <class Scalar, int Rank, class Space, class Move>
[[nodiscard]] Variable<Scalar, Rank, typename Move::Space> moved(Variable<Scalar, Rank, Space> const& x,
                                                                 Move const& move) {
  return {move(x.value), nullptr};
}

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
