// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <lockstep/core/clock.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/core/timeline.hpp>
#include <lockstep/memory/resource.hpp>
#include <lockstep/memory/stream.hpp>
#include <lockstep/nn/loss.hpp>
#include <lockstep/parallel/policy.hpp>

namespace lockstep::inline LOCKSTEP_ABI::parallel::detail {

/// The parameters of which a pass told that their gradients are complete, in that order: offset and size.
using HeardParameters = std::vector<std::pair<Index, Index>>;

/// What a replica computes with: where its work is queued, how its memory and the host's meet, and the loss of a step.
/// Used by one thread at a time.
template <class Space>
class Device {
  static_assert(sizeof(Space) == 0, "Lockstep: include lockstep/cuda.cuh and compile with nvcc");
};

/// The host's memory is where everything is already.
template <>
class Device<HostSpace> {
 public:
  using Loss = nn::Loss<HostSpace>;
  /// A batch of the loader's as the model sees it.
  template <class Batch>
  using Brought = Batch;

  explicit Device(Place const& place) : pool_(std::make_unique<ThreadPool>(place.threads)) {}

  [[nodiscard]] memory::Stream<HostSpace> stream() const noexcept { return memory::Stream<HostSpace>(*pool_); }
  /// To be called by a thread before it uses the device.
  void enter() const noexcept {}

  template <class Batch>
  [[nodiscard]] Batch const& bring(Batch const& batch) const noexcept {
    return batch;
  }
  void release() const noexcept {}
  /// Passes are not recorded: nothing was done.
  template <class Context, class Batch, class Pass>
  [[nodiscard]] bool repeat(Context const&, Batch const&, HeardParameters const*, Pass const&) const noexcept {
    return false;
  }
  /// What a model predicted, for a metric to look at.
  template <class Prediction>
  [[nodiscard]] Prediction const& show(Prediction const& prediction) const noexcept {
    return prediction;
  }
  void write(std::span<float const> from, float* to) const {
    if (from.data() != to) std::copy(from.begin(), from.end(), to);
  }
  void zero(float* to, Index count) const { std::fill_n(to, count, 0.0f); }
  /// Passes are not recorded.
  void expect_not_recorded(char const*) const noexcept {}
  /// A plain value to the device's memory, and from it.
  template <class T>
  void put(T const& value, T* to) const noexcept {
    *to = value;
  }
  template <class T>
  [[nodiscard]] T get(T const* from) const noexcept {
    return *from;
  }

  struct Mark {};  // nothing is queued

  /// A moment of the work that is queued.
  using Moment = double;
  [[nodiscard]] Moment now() const noexcept { return Clock::seconds(); }
  void took(double PhaseSeconds::*phase, Moment begin, Moment end) noexcept {
    phases_.*phase += end - begin;
    if (timeline_) timeline_->add({.name = name_of(phase), .begin = begin, .end = end});
  }
  /// Of a phase that was told, so many seconds were spent waiting for other replicas.
  void waited(double PhaseSeconds::*phase, double seconds) noexcept {
    phases_.*phase -= seconds;
    phases_.communication += seconds;
  }
  /// From here on phases are also written down there; a null one ends it.
  void trace(Timeline* timeline) noexcept { timeline_ = timeline; }
  /// Since the last call.
  [[nodiscard]] PhaseSeconds take_phases() noexcept { return std::exchange(phases_, {}); }

  /// The loss starts anew.
  void begin_step() noexcept { loss_ = {}; }
  void add_loss(Loss const& loss) noexcept { loss_ += loss; }
  /// f(totals) on the step's sum and weight.
  template <class F>
  void change_loss(F const& f) {
    double totals[] = {loss_.sum, loss_.weight};
    f(totals);
    loss_ = {totals[0], totals[1]};
  }
  [[nodiscard]] Loss const& loss() const noexcept { return loss_; }
  [[nodiscard]] nn::Loss<HostSpace> const& read(Loss const& loss) const noexcept { return loss; }
  /// The same in two halves: on a device, what is queued in between is not waited for.
  void begin_read(Loss const& loss) noexcept { read_ = loss; }
  [[nodiscard]] nn::Loss<HostSpace> const& end_read() const noexcept { return read_; }

 private:
  std::unique_ptr<ThreadPool> pool_;
  Loss loss_, read_;
  PhaseSeconds phases_;
  Timeline* timeline_ = nullptr;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::parallel::detail
