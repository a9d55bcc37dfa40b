// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <lockstep/core/segment_plan.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/data/aggregate.hpp>
#include <lockstep/memory/space.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// An element type of tensors: an integer, a floating-point number, bool or an enum.
template <class Value>
concept Number = std::is_arithmetic_v<Value> || std::is_enum_v<Value>;

/// One number per sample.
template <Number Value, class Space>
struct NumberColumn {
  TensorView<Value const, 1, Space> values;  ///< [rows]

  /// Returns the number of a row.
  [[nodiscard]] Value operator[](Index row) const noexcept requires(Space::host_accessible) { return values(row); }

  /// Compares shapes and addresses, not elements.
  bool operator==(NumberColumn const&) const = default;
};

/// N numbers per sample, from `std::array<Value, N>`.
template <Number Value, std::size_t Count, class Space>
struct ArrayColumn {
  TensorView<Value const, 2, Space> values;  ///< [rows, Count]

  /// Returns the numbers of a row.
  [[nodiscard]] std::span<Value const, Count> operator[](Index row) const noexcept requires(Space::host_accessible) {
    return std::span<Value const, Count>(values.data + row * static_cast<Index>(Count), Count);
  }

  /// Compares shapes and addresses, not elements.
  bool operator==(ArrayColumn const&) const = default;
};

/// A number that may be absent, from `std::optional<Value>`; absent numbers read as the collate's padding value.
template <Number Value, class Space>
struct OptionalColumn {
  TensorView<Value const, 1, Space> values;  ///< [rows]
  TensorView<bool const, 1, Space> present;  ///< [rows]

  /// Returns the number of a row, or nothing if it is absent.
  [[nodiscard]] std::optional<Value> operator[](Index row) const noexcept requires(Space::host_accessible) {
    return present(row) ? std::optional<Value>(values(row)) : std::nullopt;
  }

  /// Compares shapes and addresses, not elements.
  bool operator==(OptionalColumn const&) const = default;
};

namespace detail {
class ZeroRuns;  // defined in detail/zero_runs.hpp
}

/// The end of a sequence at which the padding is.
enum class Side {
  end,    ///< after the elements
  start,  ///< before the elements
};

/// Sequences padded to one length. Their elements are numbers, from `std::vector<Value>`, or N numbers each, from
/// `std::vector<std::array<Value, N>>`.
template <Number Value, class Space, std::size_t Count = 0>
struct PaddedColumn {
  static constexpr int rank = Count == 0 ? 2 : 3;    ///< of `values`
  TensorView<Value const, rank, Space> values;       ///< [rows, length] or [rows, length, Count]
  TensorView<std::int32_t const, 1, Space> lengths;  ///< [rows], each at most `length`
  TensorView<bool const, 2, Space> mask{};           ///< [rows, length], false in padding; empty by default
  SegmentPlan const* plan = nullptr;                 ///< of the ids' slots without padding; null by default
  Side side = Side::end;                             ///< where the padding is
  detail::ZeroRuns* zero_runs = nullptr;             ///< the collate's record of zero bytes in the slab
  Index first_run = 0;                               ///< number of the first row's run in `zero_runs`

  /// Returns the numbers of a row, without padding.
  [[nodiscard]] std::span<Value const> operator[](Index row) const noexcept
      requires(Space::host_accessible&& Count == 0) {
    auto const length = Index{lengths(row)}, before = side == Side::end ? 0 : values.extent[1] - length;
    return {values.data + row * values.extent[1] + before, static_cast<std::size_t>(length)};
  }

  /// Compares shapes and addresses, not elements.
  bool operator==(PaddedColumn const&) const = default;
};

/// Concatenated sequences without padding: sequence r is the elements [offsets[r], offsets[r + 1]). Elements are
/// numbers, from `std::vector<Value>`, or N numbers each, from `std::vector<std::array<Value, N>>`. FlashAttention
/// calls the offsets cu_seqlens.
template <Number Value, class Space, std::size_t Count = 0>
struct RaggedColumn {
  static constexpr int rank = Count == 0 ? 1 : 2;  ///< of `values`
  TensorView<Value const, rank, Space> values;     ///< [total] or [total, Count], total = offsets[rows]
  TensorView<Index const, 1, Space> offsets;       ///< [rows + 1], ascending from 0
  Index longest = 0;                               ///< elements of the longest sequence
  SegmentPlan const* plan = nullptr;               ///< of the ids; null by default

  /// Returns the numbers of a row.
  [[nodiscard]] std::span<Value const> operator[](Index row) const noexcept
      requires(Space::host_accessible&& Count == 0) {
    return {values.data + offsets(row), static_cast<std::size_t>(offsets(row + 1) - offsets(row))};
  }

  /// Compares shapes and addresses, not elements.
  bool operator==(RaggedColumn const&) const = default;
};

/// The column type for variable-length members of samples.
enum class Sequences {
  padded,  ///< PaddedColumn
  ragged,  ///< RaggedColumn
};

/// Concatenated strings: string r is the characters [offsets[r], offsets[r + 1]).
template <class Space>
struct TextColumn {
  TensorView<char const, 1, Space> characters;  ///< [offsets[rows]]
  TensorView<Index const, 1, Space> offsets;    ///< [rows + 1], ascending from 0

  /// Returns the string of a row.
  [[nodiscard]] std::string_view operator[](Index row) const noexcept requires(Space::host_accessible) {
    return {characters.data + offsets(row), static_cast<std::size_t>(offsets(row + 1) - offsets(row))};
  }

  /// Compares shapes and addresses, not elements.
  bool operator==(TextColumn const&) const = default;
};

/// Returns the column in another space, `Copy::Space`: `copy(view)` returns the copy of each tensor. Segment plans
/// belong to the host and are not copied.
template <Number Value, class Space, class Copy>
[[nodiscard]] NumberColumn<Value, typename Copy::Space> copied(NumberColumn<Value, Space> const& column,
                                                               Copy const& copy) {
  return {copy(column.values)};
}
/// Returns the column in another space, as above.
template <Number Value, std::size_t Count, class Space, class Copy>
[[nodiscard]] ArrayColumn<Value, Count, typename Copy::Space> copied(ArrayColumn<Value, Count, Space> const& column,
                                                                     Copy const& copy) {
  return {copy(column.values)};
}
/// Returns the column in another space, as above.
template <Number Value, class Space, class Copy>
[[nodiscard]] OptionalColumn<Value, typename Copy::Space> copied(OptionalColumn<Value, Space> const& column,
                                                                 Copy const& copy) {
  return {copy(column.values), copy(column.present)};
}
/// Returns the column in another space, as above.
template <Number Value, class Space, std::size_t Count, class Copy>
[[nodiscard]] PaddedColumn<Value, typename Copy::Space, Count> copied(PaddedColumn<Value, Space, Count> const& column,
                                                                      Copy const& copy) {
  return {copy(column.values), copy(column.lengths), copy(column.mask), nullptr, column.side};
}
/// Returns the column in another space, as above.
template <Number Value, class Space, std::size_t Count, class Copy>
[[nodiscard]] RaggedColumn<Value, typename Copy::Space, Count> copied(RaggedColumn<Value, Space, Count> const& column,
                                                                      Copy const& copy) {
  return {copy(column.values), copy(column.offsets), column.longest, nullptr};
}
/// Returns the column in another space, as above.
template <class Space, class Copy>
[[nodiscard]] TextColumn<typename Copy::Space> copied(TextColumn<Space> const& column, Copy const& copy) {
  return {copy(column.characters), copy(column.offsets)};
}

/// Calls `copied` by its former name.
template <class Batch, class Copy>
requires requires(Batch const& batch, Copy const& copy) { copied(batch, copy); }
[[deprecated("data::copied"), nodiscard]] auto moved(Batch const& batch, Copy const& copy) {
  return copied(batch, copy);
}

/// Columns of an aggregate; defined in columns.hpp.
template <class Sample, class Space = HostSpace, Sequences sequences = Sequences::padded>
class Columns;

namespace detail {

// Not collatable. The type keeps the message about the sample (CheckMember in columns.hpp) the only error.
template <class Value, class Space, Sequences sequences>
struct ColumnFor {
  static constexpr bool collatable = false;
  using type = ArrayColumn<float, 1, Space>;
};
template <Number Value, class Space, Sequences sequences>
struct ColumnFor<Value, Space, sequences> {
  static constexpr bool collatable = true;
  using type = NumberColumn<Value, Space>;
};
template <Number Value, std::size_t Count, class Space, Sequences sequences>
struct ColumnFor<std::array<Value, Count>, Space, sequences> {
  static constexpr bool collatable = true;
  using type = ArrayColumn<Value, Count, Space>;
};
template <Number Value, class Space, Sequences sequences>
struct ColumnFor<std::optional<Value>, Space, sequences> {
  static constexpr bool collatable = true;
  using type = OptionalColumn<Value, Space>;
};
template <Number Value, class Space, Sequences sequences>
requires(!std::same_as<Value, bool>)  // std::vector<bool> holds bits, not elements: not collatable
    struct ColumnFor<std::vector<Value>, Space, sequences> {
  static constexpr bool collatable = true;
  using type =
      std::conditional_t<sequences == Sequences::ragged, RaggedColumn<Value, Space>, PaddedColumn<Value, Space>>;
};
template <class Space, Sequences sequences>
struct ColumnFor<std::vector<bool>, Space, sequences> {
  static constexpr bool collatable = false;
  using type = typename ColumnFor<std::vector<std::uint8_t>, Space, sequences>::type;
};
template <Number Value, std::size_t Count, class Space, Sequences sequences>
struct ColumnFor<Value[Count], Space, sequences> {  // as std::vector<bool>
  static constexpr bool collatable = false;
  using type = ArrayColumn<Value, Count, Space>;
};
template <Number Value, std::size_t Count, class Space, Sequences sequences>
struct ColumnFor<std::vector<std::array<Value, Count>>, Space, sequences> {
  static constexpr bool collatable = true;
  using type = std::conditional_t<sequences == Sequences::ragged, RaggedColumn<Value, Space, Count>,
                                  PaddedColumn<Value, Space, Count>>;
};
template <class Space, Sequences sequences>
struct ColumnFor<std::string, Space, sequences> {
  static constexpr bool collatable = true;
  using type = TextColumn<Space>;
};
template <Aggregate Value, class Space, Sequences sequences>
struct ColumnFor<Value, Space, sequences> {
  static constexpr bool collatable = true;
  using type = Columns<Value, Space, sequences>;
};

}  // namespace detail

/// A member of a sample that has a column: number, enum, std::array, std::optional, std::vector of numbers or of
/// std::array, std::string, or an aggregate of these.
template <class Member>
concept Collatable = detail::ColumnFor<Member, HostSpace, Sequences::padded>::collatable;

/// The column type of a member of type `Member`.
template <Collatable Member, class Space, Sequences sequences = Sequences::padded>
using ColumnOf = typename detail::ColumnFor<Member, Space, sequences>::type;

}}}  // namespace lockstep::data
