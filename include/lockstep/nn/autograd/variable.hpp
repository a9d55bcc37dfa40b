// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <string>
#include <type_traits>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/tensor_view.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

struct Parameter;

/// Gradient of one activation. The first consumer's backward that asks for the gradient allocates its memory. The
/// memory is freed when the backward of the last producer has read it. The activation's own memory is freed at that
/// moment too, because all its consumers have run.
template <class Scalar>
struct GradientSlot {
  Scalar* data = nullptr;      ///< the gradient, once a consumer has asked for it
  Index size = 0;              ///< elements
  Scalar* reserved = nullptr;  ///< memory to use instead of allocating, if the gradient must outlive later allocations
  int producers = 0;           ///< closures that have yet to read the gradient
  bool memory_reused = false;  ///< another gradient uses this memory now
  Scalar* value = nullptr;     ///< the activation, while it owns its memory
  int recompute = -1;          ///< number of the tape's closure that recomputes a released value, or -1
  /// Bias whose gradient is the sum of the rows of this one, until a backward has summed them. Set by a layer that adds
  /// the bias last. The activation's only consumer may sum the rows as it writes them, and then clears it.
  Parameter const* bias = nullptr;
};

/// Input or output of a layer: a value and, while recording, the slot in which its consumers leave its gradient. A null
/// slot means that no gradient flows there (inputs, evaluation).
template <class Scalar, int Rank, class Space>
struct Variable {
  TensorView<Scalar, Rank, Space> value;  ///< does not own
  GradientSlot<Scalar>* slot = nullptr;   ///< null: no gradient

  /// Returns an extent; axis in [0, Rank).
  [[nodiscard]] Index extent(int axis) const noexcept { return value.extent[static_cast<std::size_t>(axis)]; }
  /// Returns this tensor, value and gradient, with another shape of equal size.
  /// @throws ShapeError if the number of elements differs
  template <std::size_t OtherRank>
  [[nodiscard]] Variable<Scalar, static_cast<int>(OtherRank), Space> reshape(
      std::array<Index, OtherRank> extent) const {
    expect<ShapeError>(elements(extent) == value.size(), [&] {
      return "reshape: " + to_string(value.extent) + " to " + to_string(extent) + "; both must have as many elements";
    });
    return {value.reshape(extent), slot};
  }
  /// Returns this tensor as a matrix: one row for each pixel, voxel or time step, with its channels as columns.
  [[nodiscard]] Variable<Scalar, 2, Space> as_rows() const {
    Index rows = 1;
    for (int axis = 0; axis < Rank - 1; ++axis) rows *= extent(axis);
    return reshape(std::array<Index, 2>{rows, extent(Rank - 1)});
  }
  /// Returns whether both are one activation, possibly with different shapes. An activation without elements may share
  /// its memory with others.
  template <int OtherRank>
  [[nodiscard]] bool is(Variable<Scalar, OtherRank, Space> const& other) const noexcept {
    return value.data == other.value.data && slot == other.slot;
  }
  /// Returns the complete gradient of this layer's output. For backward closures.
  [[nodiscard]] TensorView<Scalar const, Rank, Space> gradient() const noexcept { return {slot->data, value.extent}; }
};

/// Variable of a context's element type in its space: the input and output type of layers.
template <class Context, int Rank>
using VariableOf = Variable<typename Context::Scalar, Rank, typename Context::Space>;

/// Rejects the operator at compile time: the message names nn::add.
template <class Scalar, int Rank, class Space>
Variable<Scalar, Rank, Space> operator+(Variable<Scalar, Rank, Space> const& x, Variable<Scalar, Rank, Space> const&) {
  static_assert(!std::is_same_v<Scalar, Scalar>, "Lockstep: activations are added by nn::add(context, x, y)");
  return x;
}
/// Rejects the operator at compile time: the message names nn::subtract.
template <class Scalar, int Rank, class Space>
Variable<Scalar, Rank, Space> operator-(Variable<Scalar, Rank, Space> const& x, Variable<Scalar, Rank, Space> const&) {
  static_assert(!std::is_same_v<Scalar, Scalar>, "Lockstep: activations are subtracted by nn::subtract(context, x, y)");
  return x;
}
/// Rejects the operator at compile time: the message names nn::multiply.
template <class Scalar, int Rank, class Space>
Variable<Scalar, Rank, Space> operator*(Variable<Scalar, Rank, Space> const& x, Variable<Scalar, Rank, Space> const&) {
  static_assert(!std::is_same_v<Scalar, Scalar>, "Lockstep: activations are multiplied by nn::multiply(context, x, y)");
  return x;
}

/// Returns this tensor in another space, `Copy::Space`, without a gradient: the result of `copy(view)`.
template <class Scalar, int Rank, class Space, class Copy>
[[nodiscard]] Variable<Scalar, Rank, typename Copy::Space> copied(Variable<Scalar, Rank, Space> const& x,
                                                                  Copy const& copy) {
  return {copy(x.value), nullptr};
}

/// Deprecated: use copied().
template <class Prediction, class Copy>
requires requires(Prediction const& prediction, Copy const& copy) { copied(prediction, copy); }
[[deprecated("nn::copied"), nodiscard]] auto moved(Prediction const& prediction, Copy const& copy) {
  return copied(prediction, copy);
}

}}}  // namespace lockstep::nn
