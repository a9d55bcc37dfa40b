// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>

#include <lockstep/core/tensor_view.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// A size for each spatial axis, outermost first: one number for all axes, or {depth, height, width}.
template <int Dims>
struct PerAxis {
  Extents<Dims> values{};  ///< by axis, outermost first

  /// Takes one number for all axes.
  constexpr PerAxis(Index each) noexcept {  // NOLINT(google-explicit-constructor): .kernel = 3
    for (auto& value : values) value = each;
  }
  /// Takes one number for each axis.
  template <std::convertible_to<Index>... Sizes>
  requires(sizeof...(Sizes) == Dims && Dims > 1) constexpr PerAxis(Sizes... each) noexcept
      : values{static_cast<Index>(each)...} {}

  /// Compares all values.
  friend bool operator==(PerAxis const&, PerAxis const&) = default;
  /// Returns the values as the last of three axes; the axes before them get `fill`.
  [[nodiscard]] constexpr Extents<3> to_3d(Index fill) const noexcept {
    Extents<3> out{fill, fill, fill};
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(Dims); ++axis) out[axis_in_3d(axis)] = values[axis];
    return out;
  }
  /// Returns the index of `axis` among those three axes.
  [[nodiscard]] static constexpr std::size_t axis_in_3d(std::size_t axis) noexcept {
    return 3 - static_cast<std::size_t>(Dims) + axis;
  }
  /// Returns the smallest value.
  [[nodiscard]] constexpr Index min() const noexcept { return *std::min_element(values.begin(), values.end()); }
};

}}}  // namespace lockstep::nn
