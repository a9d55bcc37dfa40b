// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <utility>
#include <vector>

#include <lockstep/memory/cuda.cuh>
#include <lockstep/parallel/policy.hpp>

namespace lockstep::inline LOCKSTEP_ABI::parallel::detail {

/// Measures how long a stream is at what is queued on it. The host waits for nothing: what the marks say is asked when
/// it has come to them anyway.
class DeviceClock {
 public:
  DeviceClock() = default;
  DeviceClock(DeviceClock const&) = delete;
  DeviceClock& operator=(DeviceClock const&) = delete;
  ~DeviceClock() {
    for (auto* const event : events_) cudaEventDestroy(event);
  }

  /// A mark in the stream; valid until the next `settle`.
  [[nodiscard]] std::size_t now(memory::Stream<CudaSpace> stream) {
    if (used_ == events_.size()) {
      cudaEvent_t event = nullptr;
      memory::check_cuda(cudaEventCreateWithFlags(&event, cudaEventDefault), "cudaEventCreateWithFlags");
      events_.push_back(event);
    }
    memory::check_cuda(cudaEventRecord(events_[used_], stream.get()), "cudaEventRecord");
    return used_++;
  }
  void took(double PhaseSeconds::*phase, std::size_t begin, std::size_t end) { spans_.push_back({phase, begin, end}); }

  /// Adds up what has been marked. Waits for the last mark.
  void settle() {
    if (used_ > 0) memory::check_cuda(cudaEventSynchronize(events_[used_ - 1]), "cudaEventSynchronize");
    for (auto const& span : spans_) {
      float milliseconds = 0;
      memory::check_cuda(cudaEventElapsedTime(&milliseconds, events_[span.begin], events_[span.end]),
                         "cudaEventElapsedTime");
      phases_.*span.phase += 1e-3 * static_cast<double>(milliseconds);
    }
    spans_.clear();
    used_ = 0;
  }
  [[nodiscard]] PhaseSeconds take() {
    settle();
    return std::exchange(phases_, {});
  }
  /// Whether it is time to settle: marks take memory.
  [[nodiscard]] bool is_full() const noexcept { return used_ > 1024; }

 private:
  struct Span {
    double PhaseSeconds::*phase;
    std::size_t begin, end;
  };
  std::vector<cudaEvent_t> events_;
  std::size_t used_ = 0;
  std::vector<Span> spans_;
  PhaseSeconds phases_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::parallel::detail
