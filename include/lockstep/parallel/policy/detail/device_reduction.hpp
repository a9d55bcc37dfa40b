// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <vector>

#include <lockstep/comm/operation.hpp>
#include <lockstep/core/clock.hpp>
#include <lockstep/parallel/detail/device.hpp>
#include <lockstep/parallel/detail/gradient_wire.hpp>
#include <lockstep/parallel/gradients/gradient_buckets.hpp>
#include <lockstep/parallel/policy/detail/table_rows.hpp>
#include <lockstep/parallel/replica/replica.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Sums gradients in device memory, with a communicator for that memory. A bucket is full once the kernels that fill it
/// are queued or recorded. An event after them starts the bucket's sum, which runs on a stream of its own. Large tables
/// are summed by rows, after all buckets.
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
        events_(buckets.size() + 1) {
    // Kernels are loaded while no sum is in progress: start_remaining may use them first.
    wire_.round(buckets_.range_of(0));
    rows_.load_kernels();
  }

  /// Runs the last pass of a step, then starts the sums, which overlap with it.
  template <class Batch>
  void run(Batch const& batch, MicroStep const& step) {
    auto const kind = pass_kind(step);
    replica_.run(batch, step, kind.loss_sink, kind.ready_sink, kind.ready);
    buckets_.begin_step();
    for (auto const& [offset, count] : ready_parameters_)
      fill(offset, count, [this](std::size_t i, comm::CollectiveOperation& operation) {
        communicator_.start_after(operation, events_[i]);
      });
  }
  /// Starts the sums of buckets that no pass has filled, then the search for touched rows, and the sum of the loss.
  /// Waits for the passes.
  void start_remaining() {
    replica_.zero_unused();
    rows_.find();
    for (auto i = buckets_.started(); i < buckets_.size(); ++i) wire_.round(buckets_.range_of(i));
    replica_.device().begin_sum();
    auto& end = events_.back();
    replica_.device().record(end);
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
  [[nodiscard]] PassKind pass_kind(MicroStep const& step) {
    return {step.first,
            {[](void* self) { static_cast<DeviceReduction*>(self)->begin(); }, this},
            {[](void* self, Index offset, Index count) {
               static_cast<DeviceReduction*>(self)->gradient_queued(offset, count);
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
    fill(offset, count, [this](std::size_t i, comm::CollectiveOperation&) {
      wire_.round(buckets_.range_of(i));
      replica_.device().record(events_[i]);
    });
  }
  template <class Start>
  void fill(Index offset, Index count, Start const& start) {
    buckets_.fill(offset, count, Clock::seconds(), start);
  }

  Communicator& communicator_;
  DeviceReplica& replica_;
  GradientBuckets& buckets_;
  Rows& rows_;
  Wire const& wire_;
  std::vector<typename DeviceReplica::Event> events_;  // one for each bucket, and one for the end of the passes
  ReadyParameters ready_parameters_;
  comm::CollectiveOperation totals_;
};

}}}  // namespace lockstep::parallel::detail
