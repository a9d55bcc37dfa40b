// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <span>

#include <lockstep/core/index.hpp>
#include <lockstep/data/columns.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data {

template <class Sample>
class Row;

namespace detail {

// The batch that a collate hands out is read-only; the slab beneath it is the collate's own to write.
template <class T, int Rank>
T* writable(TensorView<T const, Rank, HostSpace> view) noexcept {
  return const_cast<T*>(view.data);
}

template <Number T>
T& cell(NumberColumn<T, HostSpace> const& column, Index row) noexcept {
  return writable(column.values)[row];
}
template <Number T, std::size_t N>
std::span<T, N> cell(ArrayColumn<T, N, HostSpace> const& column, Index row) noexcept {
  return std::span<T, N>(writable(column.values) + row * static_cast<Index>(N), N);
}
template <Number T>
auto cell(OptionalColumn<T, HostSpace> const& column, Index row) noexcept {
  struct OptionalCell {
    T& value;
    bool& present;
  };
  return OptionalCell{writable(column.values)[row], writable(column.present)[row]};
}
template <Number T, std::size_t N>
std::span<T> cell(PaddedColumn<T, HostSpace, N> const& column, Index row) noexcept {
  constexpr auto width = static_cast<Index>(N == 0 ? 1 : N);
  return {writable(column.values) + row * column.values.extent[1] * width,
          static_cast<std::size_t>(column.lengths(row) * width)};
}
inline std::span<char> cell(TextColumn<HostSpace> const& column, Index row) noexcept {
  auto const begin = column.offsets(row);
  return {writable(column.characters) + begin, static_cast<std::size_t>(column.offsets(row + 1) - begin)};
}
template <class Nested>
Row<Nested> cell(Columns<Nested, HostSpace> const& columns, Index row) noexcept;

}  // namespace detail

/// Where a dataset writes one sample. `row[&Sample::member]` is a reference to a number, a span of a std::array's, a
/// std::vector's (those of std::array: all numbers in a row) or a std::string's elements, of exactly the announced
/// length, {value, present} of an optional, or the Row of a nested aggregate.
template <class Sample>
class Row {
 public:
  Row(Columns<Sample, HostSpace> const& batch, Index row) noexcept : batch_(&batch), row_(row) {}

  template <class Member>
  [[nodiscard]] decltype(auto) operator[](Member Sample::*member) const noexcept {
    return detail::cell((*batch_)[member], row_);
  }

 private:
  Columns<Sample, HostSpace> const* batch_;
  Index row_;
};

template <class Nested>
Row<Nested> detail::cell(Columns<Nested, HostSpace> const& columns, Index row) noexcept {
  return {columns, row};
}

}  // namespace lockstep::inline LOCKSTEP_ABI::data
