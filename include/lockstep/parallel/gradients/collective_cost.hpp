// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include <lockstep/comm/operation.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

/// Cost model of an all-reduce: n bytes take start_seconds + n byte_seconds.
struct CollectiveCost {
  double start_seconds = 0;
  double byte_seconds = 0;

  /// Measures a small and a large all-reduce of `zeros`, which stay zero, as elements of `type`. Takes the fastest of a
  /// few runs of each.
  /// @shape zeros [at least large / sizeof(float)]   @collective
  template <class Communicator>
  [[nodiscard]] static CollectiveCost measure(Communicator& communicator, std::span<float> zeros,
                                              ElementType type = ElementType::float32) {
    auto const fastest = [&](std::size_t bytes) {
      double seconds = 0;
      for (int i = 0; i < 6; ++i) {
        comm::Piece piece{.type = type, .data = zeros.data(), .count = static_cast<Index>(bytes / size_of(type))};
        communicator.start(piece);
        communicator.finish();
        auto const took = piece.finished_seconds - piece.started_seconds;
        if (i < 2 || took < seconds) seconds = took;  // the first touches the memory
      }
      return seconds;
    };
    auto const brief = fastest(small), whole = fastest(large);
    CollectiveCost cost;
    cost.byte_seconds = std::max(0.0, whole - brief) / (large - small);
    cost.start_seconds = std::max(0.0, brief - cost.byte_seconds * small);
    return cost;
  }

  /// Returns the bucket size with the least exposed time for `all` bytes. Buckets of n bytes cost all / n starts. About
  /// n byte_seconds are exposed: while the first bucket fills, and after the last one starts. Rounds to the nearest
  /// power of two within `least_bucket` and `largest_bucket`.
  [[nodiscard]] std::size_t bucket_bytes(std::size_t all) const {
    if (byte_seconds <= 0) return largest_bucket;
    auto const best = std::sqrt(static_cast<double>(all) * start_seconds / byte_seconds);
    auto const bounded = std::clamp(best, static_cast<double>(least_bucket), static_cast<double>(largest_bucket));
    return std::size_t{1} << std::lround(std::log2(bounded));
  }

  static constexpr std::size_t small = 4 << 10, large = 1 << 20;
  static constexpr std::size_t least_bucket = 1 << 20, largest_bucket = 32 << 20;
};

}}}  // namespace lockstep::parallel
