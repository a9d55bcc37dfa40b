// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include <lockstep/comm/operation.hpp>
#include <lockstep/core/clock.hpp>
#include <lockstep/parallel/detail/device.hpp>
#include <lockstep/parallel/detail/host_exchange.hpp>
#include <lockstep/parallel/gradients/gradient_buckets.hpp>
#include <lockstep/parallel/policy/detail/table_rows.hpp>
#include <lockstep/parallel/replica/replica.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Sums gradients in device memory with a communicator of the host. A bucket is full once the kernels that fill it are
/// queued or recorded. An event after them starts the bucket's copy to the host. There it is summed while backward
/// continues, and while other buckets are copied in both directions. Large tables are summed by rows. No sum is
/// started during a pass, so that layers that communicate in it do so in the same order on all ranks.
template <class Communicator, class DeviceReplica>
class HostStagedReduction {
  using Exchange = HostExchange<typename DeviceReplica::Space>;
  using Rows = HostStagedRows<typename DeviceReplica::Space>;

 public:
  /// All arguments must outlive this object.
  HostStagedReduction(Communicator& communicator, DeviceReplica& replica, GradientBuckets& buckets, Rows& rows,
                      Exchange& exchange)
      : communicator_(communicator),
        replica_(replica),
        buckets_(buckets),
        rows_(rows),
        exchange_(exchange),
        events_(buckets.size() + 1) {}

  /// Runs the last pass of a step. Shards in turns fill the buckets at the end only.
  template <class Batch>
  void run(std::span<Batch const> batches, MicroStep const& step) {
    ready_parameters_.clear();
    if (replica_.shards() > 1) {
      replica_.run_shards(batches, step);
    } else {
      auto const kind = pass_kind(step);
      replica_.run(batches[0], step, kind.loss_sink, kind.ready_sink, kind.ready);
    }
    buckets_.begin_step();
    for (auto const& [offset, count] : ready_parameters_)
      buckets_.fill(offset, count, Clock::seconds(),
                    [this](std::size_t i, comm::CollectiveOperation&) { copy_to_host(i, events_[i]); });
  }
  /// Brings the buckets that no pass has filled, and sums all. The replica's stream waits for the sums.
  /// @returns the time when the host knew that the passes are complete
  double finish() {
    replica_.zero_unused();
    rows_.find(replica_.stream(), replica_.gradient_data());
    auto& end = events_.back();
    replica_.device().record(end);
    buckets_.start_remaining([&](std::size_t i, comm::CollectiveOperation&) { copy_to_host(i, end); });
    double ended = 0;
    exchange_.run(
        communicator_, buckets_.size(),
        [this](std::size_t i) -> comm::CollectiveOperation& {
          if (i == 0) set_loss();
          return buckets_.ready_operation(i, Clock::seconds());
        },
        [this](std::size_t i) { return Exchange::slice(replica_.gradient_data(), buckets_.own_range_of(i)); },
        [&] {
          if (ended == 0 && end.reached()) ended = Clock::seconds();
        });
    rows_.sum(communicator_, exchange_, replica_.stream(), replica_.gradient_data());
    exchange_.end(replica_.stream());
    return ended > 0 ? ended : Clock::seconds();
  }

  /// Returns the last pass of a step, as `run` runs it.
  [[nodiscard]] PassKind pass_kind(MicroStep const& step) {
    return {step.first,
            {[](void* self) { static_cast<HostStagedReduction*>(self)->begin(); }, this},
            {[](void* self, Index offset, Index count) {
               static_cast<HostStagedReduction*>(self)->gradient_queued(offset, count);
             },
             this},
            &ready_parameters_};
  }

 private:
  void begin() {
    buckets_.begin_step();
    ready_parameters_.clear();
  }
  void gradient_queued(Index offset, Index count) {
    ready_parameters_.emplace_back(offset, count);
    buckets_.fill(offset, count, Clock::seconds(),
                  [this](std::size_t i, comm::CollectiveOperation&) { replica_.device().record(events_[i]); });
  }
  void copy_to_host(std::size_t i, typename DeviceReplica::Event const& full) {
    if (i == 0) exchange_.copy_loss_to_host(full, replica_.loss().totals);  // complete since the end of forward
    exchange_.copy_to_host(i, full, Exchange::slice(replica_.gradient_data(), buckets_.range_of(i)));
  }
  void set_loss() {
    auto const loss = exchange_.loss();
    buckets_.piggybacked_scalars()[0] = loss.sum;
    buckets_.piggybacked_scalars()[1] = loss.weight;
  }

  Communicator& communicator_;
  DeviceReplica& replica_;
  GradientBuckets& buckets_;
  Rows& rows_;
  Exchange& exchange_;
  std::vector<typename DeviceReplica::Event> events_;  // one for each bucket, and one for the end of the passes
  ReadyParameters ready_parameters_;
};

}}}  // namespace lockstep::parallel::detail
