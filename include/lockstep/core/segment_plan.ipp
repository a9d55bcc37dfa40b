// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/segment_plan.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

LOCKSTEP_INLINE void SegmentPlan::build(std::span<std::int32_t const> ids) {
  expect<ShapeError>(ids.size() <= std::numeric_limits<std::uint32_t>::max(), [&] {
    return "SegmentPlan: " + std::to_string(ids.size()) + " ids; fewer than 2^32 can be planned at once, split them";
  });
  reserve(ids.size());
  auto const largest = collect(ids);
  sort(32 - std::countl_zero(static_cast<std::uint32_t>(largest)));
  cut();
}

LOCKSTEP_INLINE void SegmentPlan::reserve(std::size_t count) {
  for (auto* each : {&order, &first, &begin}) each->reserve(count + 1);
  for (auto* each : {&entries_, &sorted_}) each->reserve(count);
  rows.reserve(count);
  starts_.reserve(std::size_t{4} << max_bits(count));
}

LOCKSTEP_INLINE std::int32_t SegmentPlan::collect(std::span<std::int32_t const> ids) {
  entries_.resize(ids.size());
  std::int32_t largest = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    entries_[count] = static_cast<Entry>(static_cast<std::uint32_t>(ids[i])) << 32 | i;
    count += ids[i] >= 0;
    largest = std::max(largest, ids[i]);
  }
  entries_.resize(count);
  return largest;
}

LOCKSTEP_INLINE void SegmentPlan::sort(int bits) {
  int const most = max_bits(entries_.size());
  int const digits = (bits + most - 1) / most;
  if (digits == 0) return;
  int const width = (bits + digits - 1) / digits;
  auto const size = std::size_t{1} << width, mask = size - 1;
  sorted_.resize(entries_.size());
  starts_.assign(size * static_cast<std::size_t>(digits), 0);
  for (auto entry : entries_) {
    auto* counts = starts_.data();
    for (int digit = 0, shift = 32; digit < digits; ++digit, shift += width, counts += size)
      ++counts[entry >> shift & mask];
  }
  auto* starts = starts_.data();
  for (int digit = 0, shift = 32; digit < digits; ++digit, shift += width, starts += size) {
    std::exclusive_scan(starts, starts + size, starts, 0u);
    for (auto entry : entries_) sorted_[starts[entry >> shift & mask]++] = entry;
    entries_.swap(sorted_);
  }
}

LOCKSTEP_INLINE void SegmentPlan::cut() {
  auto const count = entries_.size();
  order.resize(count);
  rows.resize(count);
  first.resize(count + 1);
  begin.resize(count + 1);
  std::size_t row = 0, cuts = 0, row_start = 0;
  std::int32_t last = -1;
  for (std::size_t i = 0; i < count; ++i) {
    auto const entry = entries_[i];
    bool const new_row = id(entry) != last;
    row_start = new_row ? i : row_start;
    last = id(entry);
    order[i] = static_cast<std::uint32_t>(entry);
    rows[row] = last;
    first[row] = static_cast<std::uint32_t>(cuts);
    begin[cuts] = static_cast<std::uint32_t>(i);
    row += new_row;
    cuts += (i - row_start) % chunk == 0;
  }
  first[row] = static_cast<std::uint32_t>(cuts);
  begin[cuts] = static_cast<std::uint32_t>(count);
  rows.resize(row);
  first.resize(row + 1);
  begin.resize(cuts + 1);
}

}}  // namespace lockstep
