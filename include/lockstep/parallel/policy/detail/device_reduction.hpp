// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

#include <lockstep/comm/operation.hpp>
#include <lockstep/parallel/detail/device.hpp>
#include <lockstep/parallel/detail/gradient_wire.hpp>
#include <lockstep/parallel/gradients/gradient_buckets.hpp>
#include <lockstep/parallel/policy/detail/bucket_events.hpp>
#include <lockstep/parallel/policy/detail/table_rows.hpp>
#include <lockstep/parallel/replica/replica.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Sums gradients in device memory, with a communicator for that memory. A full bucket's event starts its sum, which
/// runs on a stream of its own. Large tables are summed by rows, after all buckets.
/// No sum is started during a pass. The first launch of a kernel may wait for all work of the device. With a sum in
/// progress it would wait for peers, and a missing peer could not be reported.
template <class Communicator, class DeviceReplica>
class DeviceReduction {
  using Wire = GradientWire<typename DeviceReplica::Space>;
  using Rows = DeviceRows<typename DeviceReplica::Space>;

 public:
  /// All arguments must outlive this object.
  DeviceReduction(Communicator& communicator, DeviceReplica& replica, GradientBuckets& buckets, Rows& rows,
                  Wire const& wire)
      : communicator_(communicator),
        replica_(replica),
        buckets_(buckets),
        rows_(rows),
        wire_(wire),
        events_(replica, buckets, {wire, buckets}) {
    // Kernels are loaded while no sum is in progress: start_remaining may use them first.
    wire_.round(buckets_.range_of(0));
    rows_.load_kernels();
  }

  /// Runs the last pass of a step, then starts the sums, which overlap with it.
  template <class Batch>
  void run(Batch const& batch, MicroStep const& step) {
    events_.run(batch, step);
    events_.start_full([this](std::size_t, comm::CollectiveOperation& operation, auto& full) {
      communicator_.start_after(operation, full);
    });
  }
  /// Starts the sums of buckets that no pass has filled, then the search for touched rows, and the sum of the loss.
  /// Waits for the passes.
  void start_remaining() {
    replica_.zero_unused();
    rows_.find();
    for (auto i = buckets_.started(); i < buckets_.size(); ++i) wire_.round(buckets_.range_of(i));
    replica_.device().begin_sum();
    auto& end = events_.record_end();
    buckets_.start_remaining(
        [&](std::size_t, comm::CollectiveOperation& operation) { communicator_.start_after(operation, end); });
    rows_.gather(communicator_, end);
    totals_ = {.type = ElementType::float64, .data = replica_.device().summed().totals, .count = 2};
    communicator_.start_after(totals_, end);
    replica_.device().await(end, [this] { communicator_.progress(); });
  }
  /// Sums the rows of large tables. Waits for all sums, and converts them to float32, where the optimizer reads them.
  void finish() {
    rows_.start(communicator_);
    communicator_.finish();
    for (std::size_t i = 0; wire_.rounds() && i < buckets_.size(); ++i) wire_.widen(buckets_.own_range_of(i));
    rows_.finish();
  }

  /// Returns the last pass of a step, as `run` runs it.
  [[nodiscard]] PassKind pass_kind(MicroStep const& step) { return events_.pass_kind(step); }

 private:
  struct RoundBucket {
    Wire const& wire;
    GradientBuckets& buckets;
    void operator()(std::size_t i) const { wire.round(buckets.range_of(i)); }
  };

  Communicator& communicator_;
  DeviceReplica& replica_;
  GradientBuckets& buckets_;
  Rows& rows_;
  Wire const& wire_;
  BucketEvents<DeviceReplica, RoundBucket> events_;
  comm::CollectiveOperation totals_;
};

}}}  // namespace lockstep::parallel::detail
