// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include <lockstep/comm/operation.hpp>
#include <lockstep/core/clock.hpp>
#include <lockstep/parallel/gradients/gradient_buckets.hpp>
#include <lockstep/parallel/gradients/row_exchange.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/parallel/replica/replica.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Records when parts of the gradients become ready, for sessions without a communicator. The report shows how well
/// several ranks could overlap their sums. Only on the host: on a device only the times of queueing would be known.
template <class DeviceReplica>
class ReadyTimes {
  static constexpr bool on_host = DeviceReplica::Space::host_accessible;
  static constexpr Index parts = 32;

 public:
  explicit ReadyTimes(DeviceReplica& replica)
      : replica_(replica),
        buckets_({replica.gradient_data(), static_cast<std::size_t>(replica.size())},
                 static_cast<std::size_t>(replica.size() / parts) * sizeof(float), replica.touched()) {}

  /// Runs forward and backward of the replica's shards.
  template <class Batch>
  void run(std::span<Batch const> batches, MicroStep const& step) {
    if (!on_host || !step.last) {
      replica_.run_shards(batches, step);
      return;
    }
    buckets_.begin_step();
    replica_.run_shards(batches, step, {},
                        {[](void* self, Index offset, Index count) {
                           static_cast<ReadyTimes*>(self)->buckets_.fill(offset, count, Clock::seconds(),
                                                                         start_nothing);
                         },
                         this});
    buckets_.start_remaining(start_nothing);
    ended_ = Clock::seconds();
  }

  /// Returns the times of the last step; empty before it.
  [[nodiscard]] std::vector<BucketTimes> times() const {
    if (!on_host || ended_ == 0) return {};
    auto times = buckets_.times();
    RowExchange::add_times(times, replica_.touched(), ended_);
    return times;
  }

 private:
  static constexpr auto start_nothing = [](std::size_t, comm::CollectiveOperation&) {};

  DeviceReplica& replica_;
  GradientBuckets buckets_;
  double ended_ = 0;
};

}}}  // namespace lockstep::parallel::detail
