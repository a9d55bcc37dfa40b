// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Groups equal ids of a list, for sums per id without atomics. The entries are ordered by id and cut into one row per
/// distinct id, and each row into chunks of at most 32 entries. Chunks can be summed in any order and by any thread.
/// Adding up the chunks of a row in order then gives bit-identical results every time.
///
/// Row r is id rows[r] and owns chunks [first[r], first[r + 1]). Chunk c sums entries order[begin[c]] to
/// order[begin[c + 1] - 1], in that order. Storage is kept between builds.
/// @determinism bitwise: a function of the ids alone; not thread-safe while building
struct SegmentPlan {
  static constexpr std::size_t chunk = 32;

  std::vector<std::uint32_t> order;  ///< positions in the list, by id, equal ids in list order
  std::vector<std::int32_t> rows;    ///< the distinct ids, ascending
  std::vector<std::uint32_t> first;  ///< one more than rows
  std::vector<std::uint32_t> begin;  ///< one more than chunks

  [[nodiscard]] Index chunks() const noexcept { return begin.empty() ? 0 : static_cast<Index>(begin.size()) - 1; }

  /// Plans `ids`; skips negative ones (padding). Costs one pass, and two passes per 8 bits of the largest id (11 for
  /// long lists).
  /// @throws ShapeError for 2^32 ids and more
  void build(std::span<std::int32_t const> ids) {
    expect<ShapeError>(ids.size() <= std::numeric_limits<std::uint32_t>::max(), [&] {
      return "SegmentPlan: " + std::to_string(ids.size()) + " ids; fewer than 2^32 can be planned at once, split them";
    });
    reserve(ids.size());
    auto const largest = collect(ids);
    sort(static_cast<int>(std::bit_width(static_cast<std::uint32_t>(largest))));
    cut();
  }

 private:
  using Entry = std::uint64_t;  // id << 32 | position

  [[nodiscard]] static std::int32_t id(Entry entry) noexcept { return static_cast<std::int32_t>(entry >> 32); }

  /// Reserves room for any list of this length, so that memory depends on the longest list and not on its ids.
  void reserve(std::size_t count) {
    for (auto* each : {&order, &first, &begin}) each->reserve(count + 1);
    for (auto* each : {&entries_, &sorted_}) each->reserve(count);
    rows.reserve(count);
    starts_.reserve(std::size_t{4} << most_bits(count));
  }

  /// Returns the bits of a sort digit: long lists justify larger histograms.
  [[nodiscard]] static int most_bits(std::size_t count) noexcept { return count < 8192 ? 8 : 11; }

  /// Collects the entries and returns the largest id, or 0.
  std::int32_t collect(std::span<std::int32_t const> ids) {
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

  /// Sorts entries by the low `bits` of the id: a stable radix sort, lowest digit first. Counts all digits in one pass.
  void sort(int bits) {
    int const most = most_bits(entries_.size());
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

  /// Cuts entries into rows and chunks without data-dependent branches: the ends of rows are unpredictable.
  void cut() {
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

  std::vector<Entry> entries_, sorted_;
  std::vector<std::uint32_t> starts_;
};

}}  // namespace lockstep
