// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include <lockstep/comm/operation.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

/// Cost model of an all-reduce: n bytes take latency_seconds + n seconds_per_byte.
struct CollectiveCost {
  double latency_seconds = 0;   ///< time of an all-reduce of 0 bytes
  double seconds_per_byte = 0;  ///< further time for each byte of a rank's data

  /// Measures a small and a large all-reduce of `zeros`, which stay zero, as elements of `type`. Takes the fastest of a
  /// few runs of each.
  /// @shape zeros [at least large / sizeof(float)]   @collective
  template <class Communicator>
  [[nodiscard]] static CollectiveCost measure(Communicator& communicator, std::span<float> zeros,
                                              ElementType type = ElementType::float32) {
    auto const fastest = [&](std::size_t bytes) {
      double seconds = 0;
      for (int i = 0; i < 6; ++i) {
        comm::CollectiveOperation operation{
            .type = type, .data = zeros.data(), .count = static_cast<Index>(bytes / size_of(type))};
        communicator.start(operation);
        communicator.finish();
        auto const took = operation.finished_seconds - operation.started_seconds;
        if (i < 2 || took < seconds) seconds = took;  // the first touches the memory
      }
      return seconds;
    };
    auto const brief = fastest(small), whole = fastest(large);
    CollectiveCost cost;
    cost.seconds_per_byte = std::max(0.0, whole - brief) / (large - small);
    cost.latency_seconds = std::max(0.0, brief - cost.seconds_per_byte * small);
    return cost;
  }

  /// Returns the bucket size with the least exposed time for `all` bytes. Buckets of n bytes cost all / n starts. About
  /// n seconds_per_byte are exposed: while the first bucket fills, and after the last one starts. Rounds to the nearest
  /// power of two within `min_bucket_bytes` and `max_bucket_bytes`.
  [[nodiscard]] std::size_t bucket_bytes(std::size_t all) const {
    if (seconds_per_byte <= 0) return max_bucket_bytes;
    auto const best = std::sqrt(static_cast<double>(all) * latency_seconds / seconds_per_byte);
    auto const bounded = std::clamp(best, static_cast<double>(min_bucket_bytes), static_cast<double>(max_bucket_bytes));
    return std::size_t{1} << std::lround(std::log2(bounded));
  }

  /// Returns the least size of a table whose touched rows are worth an exchange. It costs another start, and
  /// `list_seconds` on the host. In return, at least half of the table is not sent.
  [[nodiscard]] std::size_t min_table_bytes() const {
    constexpr double never = 1e18;
    if (seconds_per_byte <= 0) return static_cast<std::size_t>(never);
    return static_cast<std::size_t>(std::min(2 * (latency_seconds + list_seconds) / seconds_per_byte, never));
  }

  /// Copies of bits and of a list between host and device, and the list itself: two round trips of a device.
  static constexpr double list_seconds = 30e-6;
  static constexpr std::size_t small = 4 << 10;              ///< bytes of the small all-reduce of `measure`
  static constexpr std::size_t large = 1 << 20;              ///< bytes of the large all-reduce of `measure`
  static constexpr std::size_t min_bucket_bytes = 1 << 20;   ///< lower limit of bucket_bytes()
  static constexpr std::size_t max_bucket_bytes = 32 << 20;  ///< upper limit of bucket_bytes()
};

}}}  // namespace lockstep::parallel
