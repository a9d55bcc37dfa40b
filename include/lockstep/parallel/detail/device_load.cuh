// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <utility>

#include <lockstep/core/clock.hpp>
#include <lockstep/kernel/keep_busy.cuh>
#include <lockstep/memory/cuda.cuh>
#include <lockstep/parallel/detail/device_clock.cuh>
#include <lockstep/parallel/detail/device_peaks.cuh>
#include <lockstep/parallel/device_work.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Measures the passes of a device: what the host takes to queue them, and what the device takes if it need not wait
/// for the host. For the second, a few passes are queued while the device is kept busy: the events around such a pass
/// measure the device's time. These are passes 8, 16, 32 and so on. Changes no results.
class DeviceLoad {
 public:
  /// Begins a pass. `measures` is false if the device must not be kept busy.
  void begin(memory::Stream<CudaSpace> stream, bool measures) {
    ++pass_;
    auto const microseconds = static_cast<int>(1e6 * (2 * queue_seconds_ + min_seconds));
    keeps_busy_ = measures && pass_ >= 8 && (pass_ & (pass_ - 1)) == 0 && queue_seconds_ <= max_seconds;
    if (keeps_busy_) keep_busy_.run(stream, microseconds);
    before_ = stream.queued();
    began_ = Clock::seconds();
  }
  /// Ends a pass whose work is between two events of the clock.
  void end(memory::Stream<CudaSpace> stream, DeviceClock& clock, std::size_t begin, std::size_t end, bool replayed) {
    queue_seconds_ = Clock::seconds() - began_;
    ++work_.passes;
    work_.replays += replayed ? 1 : 0;
    work_.queue_seconds += queue_seconds_;
    queued_ += stream.queued().since(before_);
    if (!std::exchange(keeps_busy_, false) || clock.has_reached(begin)) return;
    ++work_.measured;
    clock.add_seconds(&work_.busy_seconds, begin, end);
  }
  /// Returns the work since the last call. `pass_bytes` estimates the memory traffic of a pass. The clock must have
  /// settled.
  [[nodiscard]] DeviceWork take(double pass_bytes) {
    auto const peaks = DevicePeaks::of_current();
    auto work = std::exchange(work_, {});
    auto const queued = std::exchange(queued_, {});
    work.kernels = queued.kernels;
    if (peaks.operations > 0)
      work.product_seconds = queued.operations / peaks.operations + queued.half_operations / peaks.half_operations;
    if (peaks.bytes > 0) work.memory_seconds = static_cast<double>(work.passes) * pass_bytes / peaks.bytes;
    pass_ = 0;
    return work;
  }

 private:
  static constexpr double min_seconds = 50e-6, max_seconds = 10e-3;  // of queueing, for a pass to be measured

  kernel::KeepBusy keep_busy_;
  DeviceWork work_;
  memory::QueuedWork queued_, before_;
  Index pass_ = 0;
  bool keeps_busy_ = false;
  double began_ = 0, queue_seconds_ = 0;  // of the last pass
};

}}}  // namespace lockstep::parallel::detail
