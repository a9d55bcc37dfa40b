// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/data/detail/stream_copy.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data::detail {

/// Where the memory of a batch is known to be zero, because the padding of the batch before stood there: most of the
/// next one's padding needs not be written. Rows note their own runs, at the same time if they like; runs are reserved
/// in the order of their addresses, as a slab in one piece hands out its memory.
class Zeros {
 public:
  struct Run {
    std::byte* begin = nullptr;
    std::byte* end = nullptr;
  };

  /// The next batch begins: what was noted is what is known.
  void advance() {
    earlier_.swap(noted_);
    noted_.clear();
    std::erase_if(earlier_, [](Run const& run) { return run.begin == run.end; });
  }
  /// Nothing is known: the memory is another.
  void forget() noexcept {
    earlier_.clear();
    noted_.clear();
  }
  /// Makes room for the runs of so many rows; returns the number of the first.
  Index reserve(Index rows) {
    auto const first = noted_.size();
    noted_.resize(first + static_cast<std::size_t>(rows));
    return static_cast<Index>(first);
  }
  /// Zeroes what is not known to be zero, and notes it all as run `number`.
  void fill(Index number, void* from, void* to) {
    Run const run{static_cast<std::byte*>(from), static_cast<std::byte*>(to)};
    auto* at = run.begin;
    auto known = std::upper_bound(earlier_.begin(), earlier_.end(), at,
                                  [](std::byte const* place, Run const& each) { return place < each.end; });
    for (; known != earlier_.end() && known->begin < run.end; ++known) {
      if (at < known->begin) stream_fill(at, known->begin, std::byte{});
      at = std::max(at, known->end);
    }
    if (at < run.end) stream_fill(at, run.end, std::byte{});
    noted_[static_cast<std::size_t>(number)] = run;
  }

 private:
  std::vector<Run> earlier_, noted_;  // by address; runs do not overlap
};

}  // namespace lockstep::inline LOCKSTEP_ABI::data::detail
