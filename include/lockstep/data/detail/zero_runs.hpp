// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <vector>

#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Records which bytes of a batch's memory are zero because they were padding in the previous batch. Most of the next
/// batch's padding then needs no write. Each row records its own run; several threads may do so at once. Runs are
/// reserved in the order of their addresses, because a slab of one block allocates in that order.
class ZeroRuns {
 public:
  struct Run {
    std::byte* begin = nullptr;
    std::byte* end = nullptr;
  };

  /// Starts the next batch: the recorded runs become the known runs.
  void advance();
  /// Forgets all runs, because the memory has changed.
  void clear() noexcept;
  /// Reserves runs for `rows` rows; returns the number of the first run.
  Index reserve(Index rows);
  /// Zeroes the bytes of a range that are not known to be zero, and records the range as run `number`.
  void fill(Index number, void* from, void* to);

 private:
  std::vector<Run> known_, recorded_;  // by address; runs do not overlap
};

}}}  // namespace lockstep::data::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/detail/zero_runs.ipp>
#endif
