// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>

#include <lockstep/core/tensor_view.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// A size for each axis of space, outermost first: one number for all of them, or {depth, height, width}.
template <int Dims>
struct PerAxis {
  Extents<Dims> values{};

  constexpr PerAxis(Index each) noexcept {  // NOLINT(google-explicit-constructor): .kernel = 3
    for (auto& value : values) value = each;
  }
  template <std::convertible_to<Index>... I>
  requires(sizeof...(I) == Dims && Dims > 1) constexpr PerAxis(I... each) noexcept
      : values{static_cast<Index>(each)...} {}

  friend bool operator==(PerAxis const&, PerAxis const&) = default;
  /// As the last of three axes; those before them get `rest`.
  [[nodiscard]] constexpr Extents<3> in_space(Index rest) const noexcept {
    Extents<3> out{rest, rest, rest};
    constexpr auto dims = static_cast<std::size_t>(Dims);
    for (std::size_t axis = 0; axis < dims; ++axis) out[3 - dims + axis] = values[axis];
    return out;
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
