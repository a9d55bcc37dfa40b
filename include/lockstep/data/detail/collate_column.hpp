// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/data/collate.hpp>
#include <lockstep/data/columns.hpp>
#include <lockstep/data/row.hpp>

// What a collate does with each kind of column: `lay_out` takes its memory, `pad` fills what a row's sample will not
// cover, `put` copies a member into its row.
namespace lockstep::inline LOCKSTEP_ABI::data::detail {

/// The padding value as an element. @throws ConfigError when an integer type does not have it
template <Number T>
T padding_as(double value) {
  if constexpr (std::is_enum_v<T>) {
    return static_cast<T>(padding_as<std::underlying_type_t<T>>(value));
  } else if constexpr (std::floating_point<T>) {
    return static_cast<T>(value);
  } else {
    double beyond = 1;  // the largest value plus one, which a double holds exactly
    for (int i = 0; i < std::numeric_limits<T>::digits; ++i) beyond *= 2;
    bool const fits = value >= static_cast<double>(std::numeric_limits<T>::min()) && value < beyond;
    if (!fits || static_cast<double>(static_cast<T>(value)) != value) {
      throw ConfigError("PadCollate: the padding value " + std::to_string(value) +
                        " does not fit a member of whole numbers of " + std::to_string(sizeof(T) * 8) +
                        " bits; choose a whole number within their range");
    }
    return static_cast<T>(value);
  }
}

/// The lengths that one variable-length member of the batch's samples announced.
template <class Sample>
struct Lengths {
  std::span<SampleExtent<Sample> const> extents;
  std::size_t next = 0;  // the number of the next variable-length member

  template <class Each>
  void take(Each&& each) {
    for (std::size_t row = 0; row < extents.size(); ++row) each(static_cast<Index>(row), extents[row].lengths[next]);
    ++next;
  }
};

template <Number T, class Sample>
void lay_out(NumberColumn<T, HostSpace>& column, Index rows, Lengths<Sample>&, memory::Scratch<>& slab, double) {
  column.values = {slab.take_elements<T>(rows), {rows}};
}
template <Number T, std::size_t N, class Sample>
void lay_out(ArrayColumn<T, N, HostSpace>& column, Index rows, Lengths<Sample>&, memory::Scratch<>& slab, double) {
  auto const width = static_cast<Index>(N);
  column.values = {slab.take_elements<T>(rows * width), {rows, width}};
}
template <Number T, class Sample>
void lay_out(OptionalColumn<T, HostSpace>& column, Index rows, Lengths<Sample>&, memory::Scratch<>& slab,
             double value) {
  static_cast<void>(padding_as<T>(value));  // refused here, before any row is written
  column.values = {slab.take_elements<T>(rows), {rows}};
  column.present = {slab.take_elements<bool>(rows), {rows}};
}
template <Number T, std::size_t N, class Sample>
void lay_out(PaddedColumn<T, HostSpace, N>& column, Index rows, Lengths<Sample>& lengths, memory::Scratch<>& slab,
             double value) {
  static_cast<void>(padding_as<T>(value));
  auto* const out = slab.take_elements<std::int32_t>(rows);
  Index longest = 0;
  lengths.take([&](Index row, Index length) {
    if (length < 0 || length > std::numeric_limits<std::int32_t>::max()) {
      throw DataError("PadCollate: the sample in row " + std::to_string(row) + " announces length " +
                      std::to_string(length) + "; a length lies in [0, 2^31)");
    }
    out[row] = static_cast<std::int32_t>(length);
    longest = std::max(longest, length);
  });
  column.lengths = {out, {rows}};
  column.values.extent[0] = rows;
  column.values.extent[1] = longest;
  if constexpr (N != 0) column.values.extent[2] = static_cast<Index>(N);
  column.values.data = slab.take_elements<T>(column.values.size());
}
template <class Sample>
void lay_out(TextColumn<HostSpace>& column, Index rows, Lengths<Sample>& lengths, memory::Scratch<>& slab, double) {
  auto* const offsets = slab.take_elements<Index>(rows + 1);
  offsets[0] = 0;
  lengths.take([&](Index row, Index length) { offsets[row + 1] = offsets[row] + length; });
  column.offsets = {offsets, {rows + 1}};
  column.characters = {slab.take_elements<char>(offsets[rows]), {offsets[rows]}};
}
template <class Nested, class Sample>
void lay_out(Columns<Nested, HostSpace>& columns, Index rows, Lengths<Sample>& lengths, memory::Scratch<>& slab,
             double value) {
  std::apply([&](auto&... column) { (lay_out(column, rows, lengths, slab, value), ...); }, columns.columns());
}

template <class Column>
void pad(Column const&, Index, double) noexcept {}  // nothing is left over
template <Number T>
void pad(OptionalColumn<T, HostSpace> const& column, Index row, double value) {
  cell(column, row).value = padding_as<T>(value);
  cell(column, row).present = false;
}
template <Number T, std::size_t N>
void pad(PaddedColumn<T, HostSpace, N> const& column, Index row, double value) {
  auto const used = cell(column, row);
  auto const width = column.values.extent[1] * static_cast<Index>(N == 0 ? 1 : N);
  auto* const end = writable(column.values) + (row + 1) * width;
  std::fill(used.data() + used.size(), end, padding_as<T>(value));
}
template <class Nested>
void pad(Columns<Nested, HostSpace> const& columns, Index row, double value) {
  std::apply([&](auto const&... column) { (pad(column, row, value), ...); }, columns.columns());
}

inline void check_length(std::size_t found, std::size_t announced, Index row) {
  if (found == announced) return;
  throw DataError("PadCollate: the sample in row " + std::to_string(row) + " has a member of length " +
                  std::to_string(found) + " where " + std::to_string(announced) +
                  " was announced; a dataset gives the same sample for the same number each time");
}

template <Number T>
void put(NumberColumn<T, HostSpace> const& column, Index row, T const& value) noexcept {
  cell(column, row) = value;
}
template <Number T, std::size_t N>
void put(ArrayColumn<T, N, HostSpace> const& column, Index row, std::array<T, N> const& values) noexcept {
  std::copy(values.begin(), values.end(), cell(column, row).begin());
}
template <Number T>
void put(OptionalColumn<T, HostSpace> const& column, Index row, std::optional<T> const& value) noexcept {
  if (!value) return;  // padded already
  cell(column, row).value = *value;
  cell(column, row).present = true;
}
template <Number T, std::size_t N, class Element>
void put(PaddedColumn<T, HostSpace, N> const& column, Index row, std::vector<Element> const& values) {
  static_assert(sizeof(Element) == sizeof(T) * (N == 0 ? 1 : N));
  auto const to = cell(column, row);
  check_length(values.size(), to.size() / (N == 0 ? 1 : N), row);
  if (!values.empty()) std::memcpy(to.data(), values.data(), to.size_bytes());
}
inline void put(TextColumn<HostSpace> const& column, Index row, std::string const& text) {
  auto const to = cell(column, row);
  check_length(text.size(), to.size(), row);
  std::copy(text.begin(), text.end(), to.begin());
}
template <class Nested>
void put(Columns<Nested, HostSpace> const& columns, Index row, Nested const& sample) {
  auto const values = members(sample);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (put(std::get<I>(columns.columns()), row, std::get<I>(values)), ...);
  }
  (std::make_index_sequence<member_count<Nested>>{});
}

}  // namespace lockstep::inline LOCKSTEP_ABI::data::detail
