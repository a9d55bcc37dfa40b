// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <lockstep/core/segment_plan.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/data/aggregate.hpp>
#include <lockstep/memory/space.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data {

/// What a tensor can be made of: integers, floating-point numbers, bool and enums.
template <class T>
concept Number = std::is_arithmetic_v<T> || std::is_enum_v<T>;

/// One number per sample.
template <Number T, class Space>
struct NumberColumn {
  TensorView<T const, 1, Space> values;  // [rows]

  bool operator==(NumberColumn const&) const = default;
};

/// N numbers per sample, from `std::array<T, N>`.
template <Number T, std::size_t N, class Space>
struct ArrayColumn {
  TensorView<T const, 2, Space> values;  // [rows, N]

  bool operator==(ArrayColumn const&) const = default;
};

/// A number that may be absent, from `std::optional<T>`; absent ones read as the collate's padding value.
template <Number T, class Space>
struct OptionalColumn {
  TensorView<T const, 1, Space> values;      // [rows]
  TensorView<bool const, 1, Space> present;  // [rows]

  bool operator==(OptionalColumn const&) const = default;
};

namespace detail {
class Zeros;  // defined in detail/zeros.hpp
}

/// The end of a sequence at which padding stands.
enum class Side { end, start };

/// Sequences padded to one length: of numbers, from `std::vector<T>`, or of N numbers each, from
/// `std::vector<std::array<T, N>>`.
template <Number T, class Space, std::size_t N = 0>
struct PaddedColumn {
  static constexpr int rank = N == 0 ? 2 : 3;
  TensorView<T const, rank, Space> values;           // [rows, length] or [rows, length, N]
  TensorView<std::int32_t const, 1, Space> lengths;  // [rows], each at most `length`
  TensorView<bool const, 2, Space> mask{};           // [rows, length], false in padding; empty unless asked for
  SegmentPlan const* plan = nullptr;                 // of the ids' slots, padding left out; null unless asked for
  Side side = Side::end;                             // where the padding is
  detail::Zeros* zeros = nullptr;                    // the collate's own: what it knows of the memory
  Index first_run = 0;                               // among these, of the first row

  bool operator==(PaddedColumn const&) const = default;
};

/// Sequences one after the other, without padding: sequence r is the elements [offsets[r], offsets[r + 1]): of numbers,
/// from `std::vector<T>`, or of N numbers each, from `std::vector<std::array<T, N>>`. The offsets are what
/// FlashAttention calls cu_seqlens.
template <Number T, class Space, std::size_t N = 0>
struct RaggedColumn {
  static constexpr int rank = N == 0 ? 1 : 2;
  TensorView<T const, rank, Space> values;    // [total] or [total, N], total = offsets[rows]
  TensorView<Index const, 1, Space> offsets;  // [rows + 1], ascending from 0
  Index longest = 0;                          // elements of the longest sequence
  SegmentPlan const* plan = nullptr;          // of the ids; null unless asked for

  bool operator==(RaggedColumn const&) const = default;
};

/// What variable-length members of a batch's samples become.
enum class Sequences {
  padded,  ///< PaddedColumn
  ragged,  ///< RaggedColumn
};

/// Texts one after the other: text r is the characters [offsets[r], offsets[r + 1]).
template <class Space>
struct TextColumn {
  TensorView<char const, 1, Space> characters;  // [offsets[rows]]
  TensorView<Index const, 1, Space> offsets;    // [rows + 1], ascending from 0

  [[nodiscard]] std::string_view operator[](Index row) const noexcept requires(Space::host_accessible) {
    return {characters.data + offsets(row), static_cast<std::size_t>(offsets(row + 1) - offsets(row))};
  }

  bool operator==(TextColumn const&) const = default;
};

/// The same column in another space, `Move::Space`: every tensor is what `move(view)` gives for it. Segment plans are
/// the host's and stay behind.
template <Number T, class Space, class Move>
[[nodiscard]] NumberColumn<T, typename Move::Space> moved(NumberColumn<T, Space> const& column, Move const& move) {
  return {move(column.values)};
}
template <Number T, std::size_t N, class Space, class Move>
[[nodiscard]] ArrayColumn<T, N, typename Move::Space> moved(ArrayColumn<T, N, Space> const& column, Move const& move) {
  return {move(column.values)};
}
template <Number T, class Space, class Move>
[[nodiscard]] OptionalColumn<T, typename Move::Space> moved(OptionalColumn<T, Space> const& column, Move const& move) {
  return {move(column.values), move(column.present)};
}
template <Number T, class Space, std::size_t N, class Move>
[[nodiscard]] PaddedColumn<T, typename Move::Space, N> moved(PaddedColumn<T, Space, N> const& column,
                                                             Move const& move) {
  return {move(column.values), move(column.lengths), move(column.mask), nullptr, column.side};
}
template <Number T, class Space, std::size_t N, class Move>
[[nodiscard]] RaggedColumn<T, typename Move::Space, N> moved(RaggedColumn<T, Space, N> const& column,
                                                             Move const& move) {
  return {move(column.values), move(column.offsets), column.longest, nullptr};
}
template <class Space, class Move>
[[nodiscard]] TextColumn<typename Move::Space> moved(TextColumn<Space> const& column, Move const& move) {
  return {move(column.characters), move(column.offsets)};
}

/// The columns of an aggregate; defined in columns.hpp.
template <class Sample, class Space = HostSpace, Sequences sequences = Sequences::padded>
class Columns;

namespace detail {

template <class T, class Space, Sequences sequences>
struct ColumnFor {
  static constexpr bool collatable = false;
};
template <Number T, class Space, Sequences sequences>
struct ColumnFor<T, Space, sequences> {
  static constexpr bool collatable = true;
  using type = NumberColumn<T, Space>;
};
template <Number T, std::size_t N, class Space, Sequences sequences>
struct ColumnFor<std::array<T, N>, Space, sequences> {
  static constexpr bool collatable = true;
  using type = ArrayColumn<T, N, Space>;
};
template <Number T, class Space, Sequences sequences>
struct ColumnFor<std::optional<T>, Space, sequences> {
  static constexpr bool collatable = true;
  using type = OptionalColumn<T, Space>;
};
template <Number T, class Space, Sequences sequences>
requires(!std::same_as<T, bool>)  // std::vector<bool> holds bits, not elements
    struct ColumnFor<std::vector<T>, Space, sequences> {
  static constexpr bool collatable = true;
  using type = std::conditional_t<sequences == Sequences::ragged, RaggedColumn<T, Space>, PaddedColumn<T, Space>>;
};
template <Number T, std::size_t N, class Space, Sequences sequences>
struct ColumnFor<std::vector<std::array<T, N>>, Space, sequences> {
  static constexpr bool collatable = true;
  using type = std::conditional_t<sequences == Sequences::ragged, RaggedColumn<T, Space, N>, PaddedColumn<T, Space, N>>;
};
template <class Space, Sequences sequences>
struct ColumnFor<std::string, Space, sequences> {
  static constexpr bool collatable = true;
  using type = TextColumn<Space>;
};
template <Aggregate T, class Space, Sequences sequences>
struct ColumnFor<T, Space, sequences> {
  static constexpr bool collatable = true;
  using type = Columns<T, Space, sequences>;
};

}  // namespace detail

/// A member of a sample that has a column: number, enum, std::array, std::optional, std::vector of numbers or of
/// std::array, std::string, or an aggregate of these.
template <class Member>
concept Collatable = detail::ColumnFor<Member, HostSpace, Sequences::padded>::collatable;

/// The column that a member of type `Member` becomes.
template <Collatable Member, class Space, Sequences sequences = Sequences::padded>
using ColumnOf = typename detail::ColumnFor<Member, Space, sequences>::type;

}  // namespace lockstep::inline LOCKSTEP_ABI::data
