// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <span>

#include <lockstep/core/index.hpp>
#include <lockstep/data/columns.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

template <class Sample>
class Row;

namespace detail {

// The batch that a collate returns is read-only, but the collate may write the slab that holds it.
template <class Value, int Rank>
Value* writable(TensorView<Value const, Rank, HostSpace> view) noexcept {
  return const_cast<Value*>(view.data);
}

template <Number Value>
Value& cell(NumberColumn<Value, HostSpace> const& column, Index row) noexcept {
  return writable(column.values)[row];
}
template <Number Value, std::size_t Count>
std::span<Value, Count> cell(ArrayColumn<Value, Count, HostSpace> const& column, Index row) noexcept {
  return std::span<Value, Count>(writable(column.values) + row * static_cast<Index>(Count), Count);
}
template <Number Value>
struct OptionalCell {
  Value& value;
  bool& present;
};
template <Number Value>
OptionalCell<Value> cell(OptionalColumn<Value, HostSpace> const& column, Index row) noexcept {
  return {writable(column.values)[row], writable(column.present)[row]};
}
template <std::size_t Count>
inline constexpr auto element_width = static_cast<Index>(Count == 0 ? 1
                                                                    : Count);  // numbers in an element of a sequence
template <Number Value, std::size_t Count>
std::span<Value> cell(PaddedColumn<Value, HostSpace, Count> const& column, Index row) noexcept {
  auto const length = column.values.extent[1], used = static_cast<Index>(column.lengths(row));
  auto const first = row * length + (column.side == Side::start ? length - used : 0);
  return {writable(column.values) + first * element_width<Count>,
          static_cast<std::size_t>(used * element_width<Count>)};
}
template <Number Value, std::size_t Count>
std::span<Value> cell(RaggedColumn<Value, HostSpace, Count> const& column, Index row) noexcept {
  auto const first = column.offsets(row), used = column.offsets(row + 1) - first;
  return {writable(column.values) + first * element_width<Count>,
          static_cast<std::size_t>(used * element_width<Count>)};
}
inline std::span<char> cell(TextColumn<HostSpace> const& column, Index row) noexcept {
  auto const begin = column.offsets(row);
  return {writable(column.characters) + begin, static_cast<std::size_t>(column.offsets(row + 1) - begin)};
}
template <class Nested, Sequences sequences>
Row<Nested> cell(Columns<Nested, HostSpace, sequences> const& columns, Index row) noexcept;

}  // namespace detail

/// The place in which a dataset writes one sample, for any collate. `row[&Sample::member]` is, by type:
/// - number: a reference
/// - std::array, std::vector, std::string: a span of its elements, of exactly the announced length
/// - std::vector of std::array: a span of all its numbers
/// - std::optional: {value, present}
/// - nested aggregate: its Row
template <class Sample>
class Row {
 public:
  /// Refers to a row of a batch, which must outlive it.
  template <Sequences sequences>
  Row(Columns<Sample, HostSpace, sequences> const& batch, Index row) noexcept
      : batch_(&batch), sequences_(sequences), row_(row) {}

  /// Returns the place of a member, by type as above.
  template <class Member>
  [[nodiscard]] decltype(auto) operator[](Member Sample::*member) const noexcept {
    return sequences_ == Sequences::padded ? detail::cell(batch<Sequences::padded>()[member], row_)
                                           : detail::cell(batch<Sequences::ragged>()[member], row_);
  }

 private:
  template <Sequences sequences>
  [[nodiscard]] auto const& batch() const noexcept {
    return *static_cast<Columns<Sample, HostSpace, sequences> const*>(batch_);
  }
  void const* batch_;
  Sequences sequences_;
  Index row_;
};

namespace detail {
template <class Nested, Sequences sequences>
Row<Nested> cell(Columns<Nested, HostSpace, sequences> const& columns, Index row) noexcept {
  return {columns, row};
}
}  // namespace detail

}}}  // namespace lockstep::data
