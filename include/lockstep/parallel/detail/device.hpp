// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include <lockstep/core/clock.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/core/timeline.hpp>
#include <lockstep/memory/resource.hpp>
#include <lockstep/memory/stream.hpp>
#include <lockstep/nn/autograd/loss.hpp>
#include <lockstep/parallel/device.hpp>
#include <lockstep/parallel/device_facts.hpp>
#include <lockstep/parallel/device_work.hpp>
#include <lockstep/parallel/policy.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Device of a replica: the stream for its work, copies between its memory and the host's, and the loss of a step. Used
/// by one thread at a time.
template <class Space>
class Device {
  static_assert(sizeof(Space) == 0, "Lockstep: include lockstep/cuda.cuh and compile with nvcc");
};

/// Device of the host: everything is already in its memory.
template <>
class Device<HostSpace> {
 public:
  using Loss = nn::Loss<HostSpace>;
  /// Type of a loader's batch as the model sees it.
  template <class Batch>
  using DeviceBatch = Batch;

  explicit Device(Place const& place);

  [[nodiscard]] memory::Stream<HostSpace> stream() const noexcept { return memory::Stream<HostSpace>(*pool_); }
  /// Makes the device current in the calling thread.
  void enter() const noexcept {}

  template <class Batch>
  [[nodiscard]] Batch const& copy_to_device(Batch const& batch) const noexcept {
    return batch;
  }
  void release() const noexcept {}
  /// Returns false: passes are not recorded.
  template <class Context, class Batch, class Pass>
  [[nodiscard]] bool run_recorded(Context const&, Batch const&, ReadyParameters const*, Pass const&) const noexcept {
    return false;
  }
  /// Returns a model's prediction for a metric.
  template <class Prediction>
  [[nodiscard]] Prediction const& copy_to_host(Prediction const& prediction) const noexcept {
    return prediction;
  }
  void write(std::span<float const> from, float* to) const;
  void zero(float* to, Index count) const { std::fill_n(to, count, 0.0f); }
  /// Does nothing: passes are not recorded.
  void expect_not_recorded(char const*) const noexcept {}
  /// Copies a plain value to the device's memory (put) or from it (get).
  template <class Value>
  void put(Value const& value, Value* to) const noexcept {
    *to = value;
  }
  template <class Value>
  [[nodiscard]] Value get(Value const* from) const noexcept {
    return *from;
  }

  struct Event {};  // work is not queued

  /// A point in time of the queued work.
  using TimePoint = double;
  [[nodiscard]] TimePoint now() const noexcept { return Clock::seconds(); }
  void add_phase(double PhaseSeconds::*phase, TimePoint begin, TimePoint end) noexcept {
    phases_.*phase += end - begin;
    if (timeline_) timeline_->add({.name = name_of(phase), .begin = begin, .end = end});
  }
  /// Counts `seconds` of a phase as communication, since they were spent in waits for other replicas.
  void count_as_communication(double PhaseSeconds::*phase, double seconds) noexcept {
    phases_.*phase -= seconds;
    phases_.communication += seconds;
  }
  /// Also records phases in `timeline`; null ends it.
  void trace(Timeline* timeline) noexcept { timeline_ = timeline; }
  /// Returns the seconds since the last call.
  [[nodiscard]] PhaseSeconds take_phases() noexcept { return std::exchange(phases_, {}); }
  /// Does nothing: only passes of a GPU are counted.
  void begin_pass(bool) const noexcept {}
  void end_pass(TimePoint, TimePoint, bool) const noexcept {}
  [[nodiscard]] DeviceWork take_work(double) const noexcept { return {}; }
  [[nodiscard]] DeviceFacts facts() const { return {}; }

  /// Resets the loss.
  void begin_step() noexcept { loss_ = {}; }
  void add_loss(Loss const& loss) noexcept { loss_ += loss; }
  /// Calls f(totals) with the step's loss sum and weight.
  template <class Function>
  void change_loss(Function const& f) {
    double totals[] = {loss_.sum, loss_.weight};
    f(totals);
    loss_ = {totals[0], totals[1]};
  }
  [[nodiscard]] Loss const& loss() const noexcept { return loss_; }
  [[nodiscard]] nn::Loss<HostSpace> const& read(Loss const& loss) const noexcept { return loss; }
  /// Reads the loss in two halves. On a device, work that is queued in between is not waited for.
  void begin_read(Loss const& loss) noexcept { read_ = loss; }
  [[nodiscard]] nn::Loss<HostSpace> const& end_read() const noexcept { return read_; }

 private:
  std::unique_ptr<ThreadPool> pool_;
  Loss loss_, read_;
  PhaseSeconds phases_;
  Timeline* timeline_ = nullptr;
};
static_assert(parallel::Device<Device<HostSpace>>);

}}}  // namespace lockstep::parallel::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/parallel/detail/device.ipp>
#endif
