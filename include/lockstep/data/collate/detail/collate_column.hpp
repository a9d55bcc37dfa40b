// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <lockstep/data/collate/collate.hpp>
#include <lockstep/data/collate/detail/collate_options.hpp>
#include <lockstep/data/collate/detail/collate_padded.hpp>
#include <lockstep/data/collate/slab.hpp>
#include <lockstep/data/columns.hpp>
#include <lockstep/data/detail/stream_copy.hpp>
#include <lockstep/data/row.hpp>

// Functions of a collate for each kind of column. `lay_out` takes its memory, `pad` fills the part of a row that its
// sample does not cover. `put` copies a member into its row, `finish` processes the column after its rows are written.
namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

template <Number Value, std::size_t Count, class Sample>
void lay_out(RaggedColumn<Value, HostSpace, Count>& column, Index rows, Lengths<Sample>& lengths, Slab& slab,
             CollateOptions const& options) {
  auto* const offsets = slab.template take_elements<Index>(rows + 1);
  offsets[0] = 0;
  lengths.take(options, [&](Index row, Index length) {
    offsets[row + 1] = offsets[row] + length;
    column.longest = std::max(column.longest, length);
  });
  column.offsets = {offsets, {rows + 1}};
  column.values.extent[0] = offsets[rows];
  if constexpr (Count != 0) column.values.extent[1] = static_cast<Index>(Count);
  column.values.data = slab.template take_elements<Value>(column.values.size());
}

template <Number Value, std::size_t Count>
void finish(RaggedColumn<Value, HostSpace, Count>& column, Slab& slab, CollateOptions const& options) {
  if constexpr (std::same_as<Value, std::int32_t> && Count == 0) {
    if (options.segment_plans == SegmentPlans::none) return;
    auto& plan = slab.take_segment_plan();
    plan.build(column.values.span());
    column.plan = &plan;
  }
}

template <Number Value, class Sample>
void lay_out(NumberColumn<Value, HostSpace>& column, Index rows, Lengths<Sample>&, Slab& slab, CollateOptions const&) {
  column.values = {slab.take_elements<Value>(rows), {rows}};
}
template <Number Value, std::size_t Count, class Sample>
void lay_out(ArrayColumn<Value, Count, HostSpace>& column, Index rows, Lengths<Sample>&, Slab& slab,
             CollateOptions const&) {
  auto const width = static_cast<Index>(Count);
  column.values = {slab.take_elements<Value>(rows * width), {rows, width}};
}
template <Number Value, class Sample>
void lay_out(OptionalColumn<Value, HostSpace>& column, Index rows, Lengths<Sample>&, Slab& slab,
             CollateOptions const& options) {
  static_cast<void>(padding_as<Value>(options));  // throws here, before any row is written
  column.values = {slab.take_elements<Value>(rows), {rows}};
  column.present = {slab.take_elements<bool>(rows), {rows}};
}
template <class Sample>
void lay_out(TextColumn<HostSpace>& column, Index rows, Lengths<Sample>& lengths, Slab& slab,
             CollateOptions const& options) {
  auto* const offsets = slab.take_elements<Index>(rows + 1);
  offsets[0] = 0;
  lengths.take(options, [&](Index row, Index length) { offsets[row + 1] = offsets[row] + length; });
  column.offsets = {offsets, {rows + 1}};
  column.characters = {slab.take_elements<char>(offsets[rows]), {offsets[rows]}};
}
template <class Nested, Sequences sequences, class Sample>
void lay_out(Columns<Nested, HostSpace, sequences>& columns, Index rows, Lengths<Sample>& lengths, Slab& slab,
             CollateOptions const& options) {
  std::apply([&](auto&... column) { (lay_out(column, rows, lengths, slab, options), ...); }, columns.columns());
}

template <class Column>
void pad(Column const&, Index, CollateOptions const&) noexcept {}  // the sample covers the whole row
template <Number Value>
void pad(OptionalColumn<Value, HostSpace> const& column, Index row, CollateOptions const& options) {
  cell(column, row).value = padding_as<Value>(options);
  cell(column, row).present = false;
}
template <class Nested, Sequences sequences>
void pad(Columns<Nested, HostSpace, sequences> const& columns, Index row, CollateOptions const& options) {
  std::apply([&](auto const&... column) { (pad(column, row, options), ...); }, columns.columns());
}

template <Number Value>
void put(NumberColumn<Value, HostSpace> const& column, Index row, Value const& value, CollateOptions const&) noexcept {
  cell(column, row) = value;
}
template <Number Value, std::size_t Count>
void put(ArrayColumn<Value, Count, HostSpace> const& column, Index row, std::array<Value, Count> const& values,
         CollateOptions const&) noexcept {
  std::copy(values.begin(), values.end(), cell(column, row).begin());
}
template <Number Value>
void put(OptionalColumn<Value, HostSpace> const& column, Index row, std::optional<Value> const& value,
         CollateOptions const&) noexcept {
  if (!value) return;  // `pad` has written it
  cell(column, row).value = *value;
  cell(column, row).present = true;
}
/// Copies a sequence into its row, padded or ragged.
template <template <class, class, std::size_t> class SequenceColumn, Number Value, std::size_t Count, class Element>
void put(SequenceColumn<Value, HostSpace, Count> const& column, Index row, std::vector<Element> const& values,
         CollateOptions const& options) {
  static_assert(sizeof(Element) == sizeof(Value) * element_width<Count>);
  auto const to = cell(column, row);
  check_length(options, values.size(), to.size() / element_width<Count>, row);
  stream_copy(to.data(), values.data(), to.size_bytes());
}
inline void put(TextColumn<HostSpace> const& column, Index row, std::string const& text,
                CollateOptions const& options) {
  auto const to = cell(column, row);
  check_length(options, text.size(), to.size(), row);
  std::copy(text.begin(), text.end(), to.begin());
}
template <class Nested, Sequences sequences>
void put(Columns<Nested, HostSpace, sequences> const& columns, Index row, Nested const& sample,
         CollateOptions const& options) {
  if constexpr (Aggregate<Nested>) {
    auto const values = members(sample);
    [&]<std::size_t... Indices>(std::index_sequence<Indices...>) {
      (put(std::get<Indices>(columns.columns()), row, std::get<Indices>(values), options), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<typename Columns<Nested, HostSpace, sequences>::Tuple>>{});
  }
}

template <class Column>
void finish(Column&, Slab&, CollateOptions const&) noexcept {}
template <class Nested, Sequences sequences>
void finish(Columns<Nested, HostSpace, sequences>& columns, Slab& slab, CollateOptions const& options) {
  std::apply([&](auto&... column) { (finish(column, slab, options), ...); }, columns.columns());
}

/// Lays out a batch for both collates: all columns are in the slab.
template <Sequences sequences, class Sample>
Columns<Sample, HostSpace, sequences> plan_columns(BatchPlan<Sample> const& plan, Slab& slab,
                                                   CollateOptions const& options) {
  auto const rows = static_cast<Index>(plan.positions.size());
  Columns<Sample, HostSpace, sequences> batch(rows, {plan.positions.data(), {rows}}, plan.epoch);
  slab.rewind();
  Lengths<Sample> lengths{plan.extents};
  lay_out(batch, rows, lengths, slab, options);
  return batch;
}

}}}  // namespace lockstep::data::detail
