// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <span>

#include <lockstep/comm/operation.hpp>
#include <lockstep/core/clock.hpp>
#include <lockstep/parallel/detail/device.hpp>
#include <lockstep/parallel/detail/host_exchange.hpp>
#include <lockstep/parallel/gradients/gradient_buckets.hpp>
#include <lockstep/parallel/policy/detail/bucket_events.hpp>
#include <lockstep/parallel/policy/detail/table_rows.hpp>
#include <lockstep/parallel/replica/replica.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Sums gradients in device memory with a communicator of the host. A full bucket's event starts its copy to the host.
/// There it is summed while backward continues, and while other buckets are copied in both directions. Large tables are
/// summed by rows. No sum is started during a pass, so that layers that communicate in it do so in the same order on
/// all ranks.
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
        events_(replica, buckets, {}) {}

  /// Runs the last pass of a step. Shards in turns fill the buckets at the end only.
  template <class Batch>
  void run(std::span<Batch const> batches, MicroStep const& step) {
    if (replica_.shards() > 1) {
      events_.clear();
      replica_.run_shards(batches, step);
    } else {
      events_.run(batches[0], step);
    }
    events_.start_full([this](std::size_t i, comm::CollectiveOperation&, auto& full) { copy_to_host(i, full); });
  }
  /// Brings the buckets that no pass has filled, and sums all. The replica's stream waits for the sums.
  /// @returns the time when the host knew that the passes are complete
  double finish() {
    replica_.zero_unused();
    rows_.find(replica_.stream(), replica_.gradient_data());
    auto& end = events_.record_end();
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
  [[nodiscard]] PassKind pass_kind(MicroStep const& step) { return events_.pass_kind(step); }

 private:
  struct NoPreparation {
    void operator()(std::size_t) const noexcept {}
  };

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
  BucketEvents<DeviceReplica, NoPreparation> events_;
};

}}}  // namespace lockstep::parallel::detail
