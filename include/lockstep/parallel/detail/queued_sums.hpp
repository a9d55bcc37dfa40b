// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <vector>

#include <lockstep/comm/piece.hpp>
#include <lockstep/core/clock.hpp>
#include <lockstep/parallel/detail/device.hpp>
#include <lockstep/parallel/detail/gradient_wire.hpp>
#include <lockstep/parallel/gradient_buckets.hpp>
#include <lockstep/parallel/replica.hpp>

namespace lockstep::inline LOCKSTEP_ABI::parallel::detail {

/// The sums of a device's gradients where the communicator's memory is the device's. A bucket is full when the kernels
/// that fill it are queued, or recorded: a mark behind them tells its sum, which is queued beside them, when to begin.
/// No sum is started within a pass. The first launch of a kernel may wait for all that the device has to do, and would
/// for the peers of a sum, of whom nobody could say that they do not come.
template <class Communicator, class DeviceReplica>
class QueuedSums {
  using Wire = GradientWire<typename DeviceReplica::Space>;

 public:
  /// All of them outlive this object.
  QueuedSums(Communicator& communicator, DeviceReplica& replica, GradientBuckets& buckets, Wire const& wire)
      : communicator_(communicator), replica_(replica), buckets_(buckets), wire_(wire), marks_(buckets.size() + 1) {
    wire_.round(buckets_.all_of(0));  // once while nobody sums: start_rest may round for the first time
  }

  /// The last pass of a step, whose sums begin beside it: they are started once it is queued.
  template <class Batch>
  void run(Batch const& batch, MicroStep const& step) {
    replica_.run(
        batch, step, {[](void* self) { static_cast<QueuedSums*>(self)->begin(); }, this},
        {[](void* self, Index offset, Index count) { static_cast<QueuedSums*>(self)->is_queued(offset, count); }, this},
        &heard_);
    buckets_.begin_step();
    for (auto const& [offset, count] : heard_)
      fill(offset, count, [this](std::size_t i, comm::Piece& piece) { communicator_.start_after(piece, marks_[i]); });
  }
  /// What no pass has filled leaves behind the last of them, and then the loss. Waits for the passes.
  void start_rest() {
    replica_.zero_unused();
    for (auto i = buckets_.started(); i < buckets_.size(); ++i) wire_.round(buckets_.all_of(i));
    replica_.device().begin_sum();
    auto& end = marks_.back();
    replica_.device().make(end);
    buckets_.start_rest([&](std::size_t, comm::Piece& piece) { communicator_.start_after(piece, end); });
    totals_ = {.type = ElementType::float64, .data = replica_.device().summed().totals, .count = 2};
    communicator_.start_after(totals_, end);
    replica_.device().await(end, [this] { communicator_.progress(); });
  }
  /// Once all of them are complete: the sums are where the optimizer reads them.
  void widen() const {
    for (std::size_t i = 0; wire_.rounds() && i < buckets_.size(); ++i) wire_.widen(buckets_.own_of(i));
  }

 private:
  void begin() {
    buckets_.begin_step();
    heard_.clear();
  }
  void is_queued(Index offset, Index count) {
    heard_.emplace_back(offset, count);
    fill(offset, count, [this](std::size_t i, comm::Piece&) {
      wire_.round(buckets_.all_of(i));
      replica_.device().make(marks_[i]);
    });
  }
  template <class Start>
  void fill(Index offset, Index count, Start const& start) {
    buckets_.fill(offset, count, Clock::seconds(), start);
  }

  Communicator& communicator_;
  DeviceReplica& replica_;
  GradientBuckets& buckets_;
  Wire const& wire_;
  std::vector<typename DeviceReplica::Mark> marks_;  // of each bucket, and of the end of the passes
  HeardParameters heard_;
  comm::Piece totals_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::parallel::detail
