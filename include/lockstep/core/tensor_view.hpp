// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>

#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Extents of a dense row-major tensor, outermost first.
template <int Rank>
using Extents = std::array<Index, static_cast<std::size_t>(Rank)>;

/// Returns the number of elements.
template <std::size_t Rank>
[[nodiscard]] constexpr Index elements(std::array<Index, Rank> const& extent) noexcept {
  Index n = 1;
  for (auto e : extent) n *= e;
  return n;
}

/// Returns "[32, 128]", for messages.
[[nodiscard, gnu::cold]] std::string to_string(std::span<Index const> extent);

/// A non-owning dense row-major tensor. The memory space is part of the type: views of different spaces do not convert.
/// The host can read elements only if `Space::host_accessible`.
template <class Value, int Rank, class Space>
struct TensorView {
  using value_type = std::remove_const_t<Value>;  ///< element type without const
  Value* data = nullptr;                          ///< first element
  Extents<Rank> extent{};                         ///< outermost first; row-major and without gaps

  constexpr TensorView() = default;
  /// Refers to elements(extents) elements from `first`.
  constexpr TensorView(Value* first, Extents<Rank> extents) noexcept : data(first), extent(extents) {}
  /// Converts a view of mutable elements to a view of constant elements.
  template <class Other>
  requires(std::is_const_v<Value>&& std::same_as<Other, value_type>) constexpr TensorView(
      TensorView<Other, Rank, Space> other) noexcept
      : data(other.data), extent(other.extent) {}

  /// Compares addresses and extents, not elements.
  bool operator==(TensorView const&) const = default;

  /// Returns the number of elements.
  [[nodiscard]] constexpr Index size() const noexcept { return elements(extent); }
  /// Returns whether there is no element.
  [[nodiscard]] constexpr bool empty() const noexcept { return size() == 0; }

  /// Returns the element at the given indices; not checked.
  template <std::convertible_to<Index>... Positions>
  requires(sizeof...(Positions) == Rank && Space::host_accessible) [[nodiscard]] constexpr Value& operator()(
      Positions... indices) const noexcept {
    Index at = 0;
    [[maybe_unused]] int axis = 0;
    ((at = at * extent[static_cast<std::size_t>(axis++)] + static_cast<Index>(indices)), ...);
    return data[at];
  }
  /// Returns all elements in row-major order.
  [[nodiscard]] constexpr std::span<Value> span() const noexcept requires(Space::host_accessible) {
    return {data, static_cast<std::size_t>(size())};
  }

  /// Returns the elements with other extents of equal size; not checked.
  template <std::size_t OtherRank>
  [[nodiscard]] constexpr TensorView<Value, static_cast<int>(OtherRank), Space> reshape(
      std::array<Index, OtherRank> other) const noexcept {
    return {data, other};
  }
};

}}  // namespace lockstep

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/tensor_view.ipp>
#endif
