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
  static constexpr std::size_t chunk = 32;  ///< most entries of a chunk

  std::vector<std::uint32_t> order;  ///< positions in the list, by id, equal ids in list order
  std::vector<std::int32_t> rows;    ///< the distinct ids, ascending
  std::vector<std::uint32_t> first;  ///< one more than rows
  std::vector<std::uint32_t> begin;  ///< one more than chunks

  /// Returns the number of chunks.
  [[nodiscard]] Index chunks() const noexcept { return begin.empty() ? 0 : static_cast<Index>(begin.size()) - 1; }

  /// Plans `ids`; skips negative ones (padding). Costs one pass, and two passes per 8 bits of the largest id (11 for
  /// long lists).
  /// @throws ShapeError for 2^32 ids and more
  void build(std::span<std::int32_t const> ids);

 private:
  using Entry = std::uint64_t;  // id << 32 | position

  [[nodiscard]] static std::int32_t id(Entry entry) noexcept { return static_cast<std::int32_t>(entry >> 32); }

  /// Reserves room for any list of this length, so that memory depends on the longest list and not on its ids.
  void reserve(std::size_t count);

  /// Returns the bits of a sort digit: long lists justify larger histograms.
  [[nodiscard]] static int max_bits(std::size_t count) noexcept { return count < 8192 ? 8 : 11; }

  /// Collects the entries and returns the largest id, or 0.
  std::int32_t collect(std::span<std::int32_t const> ids);

  /// Sorts entries by the low `bits` of the id: a stable radix sort, lowest digit first. Counts all digits in one pass.
  void sort(int bits);

  /// Cuts entries into rows and chunks without data-dependent branches: the ends of rows are unpredictable.
  void cut();

  std::vector<Entry> entries_, sorted_;
  std::vector<std::uint32_t> starts_;
};

}}  // namespace lockstep

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/segment_plan.ipp>
#endif
