// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/data/detail/stream_copy.hpp>
#include <lockstep/data/detail/zero_runs.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

LOCKSTEP_INLINE void ZeroRuns::advance() {
  known_.swap(recorded_);
  recorded_.clear();
  std::erase_if(known_, [](Run const& run) { return run.begin == run.end; });
}

LOCKSTEP_INLINE void ZeroRuns::clear() noexcept {
  known_.clear();
  recorded_.clear();
}

LOCKSTEP_INLINE Index ZeroRuns::reserve(Index rows) {
  auto const first = recorded_.size();
  recorded_.resize(first + static_cast<std::size_t>(rows));
  return static_cast<Index>(first);
}

LOCKSTEP_INLINE void ZeroRuns::fill(Index number, void* from, void* to) {
  Run const run{static_cast<std::byte*>(from), static_cast<std::byte*>(to)};
  auto* at = run.begin;
  auto known = std::upper_bound(known_.begin(), known_.end(), at,
                                [](std::byte const* place, Run const& each) { return place < each.end; });
  for (; known != known_.end() && known->begin < run.end; ++known) {
    if (at < known->begin) stream_fill(at, known->begin, std::byte{});
    at = std::max(at, known->end);
  }
  if (at < run.end) stream_fill(at, run.end, std::byte{});
  recorded_[static_cast<std::size_t>(number)] = run;
}

}}}  // namespace lockstep::data::detail
