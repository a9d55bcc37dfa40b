// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>

#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Maps the distance between a query and a key to a bucket. Near distances have a bucket each. Farther ones share
/// buckets whose width grows by a constant factor. All from `farthest` on share the last.
/// @source T5 (Raffel et al. 2020); the same buckets as its published implementations
struct RelativeBuckets {
  Index count = 32;      ///< number of buckets
  Index farthest = 128;  ///< distance from which on all share the last bucket
  bool causal = false;   ///< keys after the query share bucket 0; if false, they have the upper half of the buckets

  /// Returns the bucket of the key's position minus the query's, in [0, count).
  [[nodiscard]] constexpr Index of(Index distance) const noexcept {
    Index const here = causal ? count : count / 2, first = !causal && distance > 0 ? here : 0;
    Index const steps = !causal && distance > 0 ? distance : std::max<Index>(0, -distance);
    Index const near = here / 2;
    if (steps < near) return first + steps;
    auto const ratio = [near](Index x) { return std::log(static_cast<double>(x) / static_cast<double>(near)); };
    constexpr double except_for_rounding = 1 + 1e-7;  // a distance exactly on a border belongs to the upper bucket
    auto const beyond =
        static_cast<Index>(ratio(steps) / ratio(farthest) * static_cast<double>(here - near) * except_for_rounding);
    return first + std::min(here - 1, near + beyond);
  }
  /// A bucket's distances, which are contiguous, among `distances` from `first` on: [begin, end), counted from `first`.
  struct Range {
    Index begin;  ///< first distance
    Index end;    ///< end of the distances, excluded
  };
  /// Returns the distances of a bucket in [0, count); may be empty.
  [[nodiscard]] constexpr Range range_of(Index bucket, Index first, Index distances) const noexcept {
    Index const after = std::clamp<Index>(1 - first, 0, distances);  // the first key after the query
    bool const upper = !causal && bucket >= count / 2;
    // Bucket numbers grow with the distance after the query, and fall up to the query.
    Index const low = upper ? after : 0, high = upper || causal ? distances : after;
    auto const first_that = [&](auto const& holds) {
      Index begin = low, end = high;
      while (begin < end) {
        auto const middle = begin + (end - begin) / 2;
        holds(of(first + middle)) ? end = middle : begin = middle + 1;
      }
      return begin;
    };
    return {first_that([&](Index b) { return upper ? b >= bucket : b <= bucket; }),
            first_that([&](Index b) { return upper ? b > bucket : b < bucket; })};
  }
  /// Whether `of` is defined: each direction has at least one near and one far bucket, and `farthest` is beyond the
  /// near ones.
  [[nodiscard]] constexpr bool valid() const noexcept {
    Index const here = causal ? count : count / 2;
    return here >= 2 && farthest > here / 2 && (causal || count % 2 == 0);
  }
};

}}}  // namespace lockstep::kernel
