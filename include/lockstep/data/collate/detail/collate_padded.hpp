// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/data/collate/detail/collate_options.hpp>
#include <lockstep/data/collate/slab.hpp>
#include <lockstep/data/detail/stream_copy.hpp>
#include <lockstep/data/detail/zero_runs.hpp>
#include <lockstep/data/row.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Returns the smallest bucket that holds `longest`: multiples of 8 up to 64, of 16 up to 128, of 32 up to 256 and so
/// on.
inline Index bucket_of(Index longest) noexcept {
  Index step = 8;
  while (8 * step < longest) step *= 2;
  return (longest + step - 1) / step * step;
}

/// Returns the length that rows are padded to. @throws DataError if a sample is longer than the fixed length
inline Index padded_length(CollateOptions const& options, Index longest, Index longest_row) {
  if (options.length == 0) {
    auto const length = std::max(longest, std::min(bucket_of(longest), options.largest_bucket));
    return (length + options.multiple - 1) / options.multiple * options.multiple;
  }
  if (longest <= options.length) return options.length;
  throw DataError(std::string(options.collate_name) + ": the sample in row " + std::to_string(longest_row) +
                  " has length " + std::to_string(longest) + ", and rows are padded to " +
                  std::to_string(options.length) + "; shorten the samples or raise `length`");
}

/// Rows of at least this size are worth tracking which of their bytes are already zero.
inline constexpr Index min_tracked_row_bytes = Index{1} << 12;

template <Number Value>
bool all_bytes_zero(Value value) noexcept {
  using Bytes = std::array<std::byte, sizeof(Value)>;
  return std::bit_cast<Bytes>(value) == Bytes{};
}

template <Number Value, std::size_t Count, class Sample>
void lay_out(PaddedColumn<Value, HostSpace, Count>& column, Index rows, Lengths<Sample>& lengths, Slab& slab,
             CollateOptions const& options) {
  auto const value = padding_as<Value>(options);  // throws here, before any row is written
  auto* const out = slab.template take_elements<std::int32_t>(rows);
  Index longest = 0, longest_row = 0;
  lengths.take(options, [&](Index row, Index length) {
    out[row] = static_cast<std::int32_t>(length);
    if (length > longest) {
      longest = length;
      longest_row = row;
    }
  });
  auto const length = padded_length(options, longest, longest_row);
  column.lengths = {out, {rows}};
  column.side = options.side;
  column.values.extent[0] = rows;
  column.values.extent[1] = length;
  if constexpr (Count != 0) column.values.extent[2] = static_cast<Index>(Count);
  column.values.data = slab.template take_elements<Value>(column.values.size());
  column.zero_runs = nullptr;
  if (all_bytes_zero(value) &&
      length * element_width<Count> * static_cast<Index>(sizeof(Value)) >= min_tracked_row_bytes) {
    column.zero_runs = &slab.zero_runs();
    column.first_run = slab.zero_runs().reserve(rows);
  }
  if (options.mask == Mask::build) column.mask = {slab.template take_elements<bool>(rows * length), {rows, length}};
}

template <Number Value, std::size_t Count>
void pad(PaddedColumn<Value, HostSpace, Count> const& column, Index row, CollateOptions const& options) {
  auto const used = cell(column, row);
  auto const length = column.values.extent[1];
  auto* const begin = writable(column.values) + row * length * element_width<Count>;
  auto* const end = begin + length * element_width<Count>;
  if (column.zero_runs != nullptr) {
    auto const run = column.first_run + row;
    column.side == Side::end ? column.zero_runs->fill(run, used.data() + used.size(), end)
                             : column.zero_runs->fill(run, begin, used.data());
  } else {
    auto const value = padding_as<Value>(options);
    stream_fill(begin, used.data(), value);
    stream_fill(used.data() + used.size(), end, value);
  }
  if (column.mask.data == nullptr) return;
  auto* const mask = writable(column.mask) + row * length;
  auto const first = (used.data() - begin) / element_width<Count>, count = static_cast<Index>(column.lengths(row));
  std::fill(mask, mask + first, false);
  std::fill(mask + first, mask + first + count, true);
  std::fill(mask + first + count, mask + length, false);
}

template <Number Value, std::size_t Count>
void finish(PaddedColumn<Value, HostSpace, Count>& column, Slab& slab, CollateOptions const& options) {
  if constexpr (std::same_as<Value, std::int32_t> && Count == 0) {
    if (options.segment_plans == SegmentPlans::none) return;
    auto const slots = column.values.size();
    auto* const ids = slab.template take_elements<std::int32_t>(slots);
    std::fill_n(ids, slots, -1);  // a plan leaves out negative ids
    for (Index row = 0; row < column.values.extent[0]; ++row) {
      auto const used = cell(column, row);
      std::copy(used.begin(), used.end(), ids + (used.data() - column.values.data));
    }
    auto& plan = slab.take_segment_plan();
    plan.build({ids, static_cast<std::size_t>(slots)});
    column.plan = &plan;
  }
}

}}}  // namespace lockstep::data::detail
