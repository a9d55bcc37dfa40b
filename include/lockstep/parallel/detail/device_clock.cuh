// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <utility>
#include <vector>

#include <lockstep/core/clock.hpp>
#include <lockstep/core/timeline.hpp>
#include <lockstep/memory/cuda.cuh>
#include <lockstep/parallel/policy.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Measures how long a stream takes for its queued work. Does not block the host: events are read only when the host
/// waits for them anyway.
class DeviceClock {
 public:
  DeviceClock() = default;
  DeviceClock(DeviceClock const&) = delete;
  DeviceClock& operator=(DeviceClock const&) = delete;
  ~DeviceClock() {
    for (auto* const event : events_) cudaEventDestroy(event);
    if (zero_) cudaEventDestroy(zero_);
  }

  /// Records an event in the stream, whose number is valid until the next `read_times`.
  [[nodiscard]] std::size_t now(memory::Stream<CudaSpace> stream) {
    if (used_ == events_.size()) events_.push_back(created());
    memory::check_cuda(cudaEventRecord(events_[used_], stream.get()), "cudaEventRecord");
    return used_++;
  }
  void add_phase(double PhaseSeconds::*phase, std::size_t begin, std::size_t end) {
    add_seconds(&(phases_.*phase), begin, end);
    if (timeline_)
      timeline_->add({.name = name_of(phase), .begin = static_cast<double>(begin), .end = static_cast<double>(end)});
  }
  /// Adds the seconds between two events to `*to`, at the latest in `take`.
  void add_seconds(double* to, std::size_t begin, std::size_t end) { spans_.push_back({to, begin, end}); }
  /// Returns whether the stream has reached an event. Does not wait.
  [[nodiscard]] bool has_reached(std::size_t event) const {
    auto const status = cudaEventQuery(events_[event]);
    if (status == cudaErrorNotReady) return static_cast<void>(cudaGetLastError()), false;  // counts as an error
    memory::check_cuda(status, "cudaEventQuery");
    return true;
  }
  /// Also records phases in `timeline`. All entries hold events until `read_times` converts them to seconds. Null ends
  /// the recording. Waits for the stream.
  void trace(memory::Stream<CudaSpace> stream, Timeline* timeline) {
    read_times();
    timeline_ = timeline;
    if (!timeline) return;
    if (!zero_) zero_ = created();
    memory::check_cuda(cudaEventRecord(zero_, stream.get()), "cudaEventRecord");
    memory::check_cuda(cudaEventSynchronize(zero_), "cudaEventSynchronize");
    zero_seconds_ = Clock::seconds();
    converted_ = timeline->size();
  }

  /// Adds up all recorded phases. Waits for the last event.
  void read_times() {
    if (used_ > 0) memory::check_cuda(cudaEventSynchronize(events_[used_ - 1]), "cudaEventSynchronize");
    for (auto const& span : spans_) *span.to += between(events_[span.begin], events_[span.end]);
    spans_.clear();
    if (timeline_) write_seconds();
    used_ = 0;
  }
  [[nodiscard]] PhaseSeconds take() {
    read_times();
    return std::exchange(phases_, {});
  }
  /// Returns whether to call `read_times`, since events take memory.
  [[nodiscard]] bool is_full() const noexcept { return used_ > 1024; }

 private:
  struct Span {
    double* to;
    std::size_t begin, end;
  };

  [[nodiscard]] static cudaEvent_t created() {
    cudaEvent_t event = nullptr;
    memory::check_cuda(cudaEventCreateWithFlags(&event, cudaEventDefault), "cudaEventCreateWithFlags");
    return event;
  }
  [[nodiscard]] static double between(cudaEvent_t begin, cudaEvent_t end) {
    float milliseconds = 0;
    memory::check_cuda(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
    return 1e-3 * static_cast<double>(milliseconds);
  }
  void write_seconds() {
    for (; converted_ < timeline_->size(); ++converted_)
      for (auto* const time_point : {&(*timeline_)[converted_].begin, &(*timeline_)[converted_].end})
        *time_point = zero_seconds_ + between(zero_, events_[static_cast<std::size_t>(*time_point)]);
  }

  std::vector<cudaEvent_t> events_;
  std::size_t used_ = 0;
  Timeline* timeline_ = nullptr;
  std::size_t converted_ = 0;   // number of its spans in seconds
  cudaEvent_t zero_ = nullptr;  // an event at a known time
  double zero_seconds_ = 0;
  std::vector<Span> spans_;
  PhaseSeconds phases_;
};

}}}  // namespace lockstep::parallel::detail
