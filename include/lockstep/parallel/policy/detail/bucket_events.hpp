// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <vector>

#include <lockstep/comm/operation.hpp>
#include <lockstep/core/clock.hpp>
#include <lockstep/parallel/gradients/gradient_buckets.hpp>
#include <lockstep/parallel/replica/replica.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Records which gradients a pass fills in device memory, and an event for each bucket. A bucket is full once the
/// kernels that fill it are queued or recorded. Its event follows `prepare(i)`, which may queue more work for bucket i.
template <class DeviceReplica, class Prepare>
class BucketEvents {
 public:
  using Event = typename DeviceReplica::Event;

  /// All arguments must outlive this object, which must not move.
  BucketEvents(DeviceReplica& replica, GradientBuckets& buckets, Prepare prepare)
      : replica_(replica), buckets_(buckets), prepare_(prepare), events_(buckets.size() + 1) {}
  BucketEvents(BucketEvents const&) = delete;
  BucketEvents& operator=(BucketEvents const&) = delete;

  /// Returns the last pass of a step, as `run` runs it.
  [[nodiscard]] PassKind pass_kind(MicroStep const& step) {
    return {step.first,
            {[](void* self) { static_cast<BucketEvents*>(self)->begin(); }, this},
            {[](void* self, Index offset, Index count) {
               static_cast<BucketEvents*>(self)->gradient_queued(offset, count);
             },
             this},
            &ready_};
  }
  /// Runs the last pass of a step.
  template <class Batch>
  void run(Batch const& batch, MicroStep const& step) {
    auto const kind = pass_kind(step);
    replica_.run(batch, step, kind.loss_sink, kind.ready_sink, kind.ready);
  }
  /// Forgets the gradients of the last pass, before passes that fill buckets at the end only.
  void clear() noexcept { ready_.clear(); }
  /// Calls start(i, operation, event) for each bucket i that the pass has filled.
  template <class Start>
  void start_full(Start const& start) {
    buckets_.begin_step();
    for (auto const& [offset, count] : ready_)
      buckets_.fill(offset, count, Clock::seconds(),
                    [&](std::size_t i, comm::CollectiveOperation& operation) { start(i, operation, events_[i]); });
  }
  /// Records the end of the passes.
  Event& record_end() {
    replica_.device().record(events_.back());
    return events_.back();
  }

 private:
  void begin() {
    buckets_.begin_step();
    ready_.clear();
  }
  void gradient_queued(Index offset, Index count) {
    ready_.emplace_back(offset, count);
    buckets_.fill(offset, count, Clock::seconds(), [this](std::size_t i, comm::CollectiveOperation&) {
      prepare_(i);
      replica_.device().record(events_[i]);
    });
  }

  DeviceReplica& replica_;
  GradientBuckets& buckets_;
  Prepare prepare_;
  std::vector<Event> events_;  // one for each bucket, and one for the end of the passes
  ReadyParameters ready_;
};

}}}  // namespace lockstep::parallel::detail
