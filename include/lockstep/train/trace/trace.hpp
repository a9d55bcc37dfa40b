// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <utility>

#include <lockstep/core/index.hpp>
#include <lockstep/core/timeline.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Options of Trace: the steps to record.
struct TraceOptions {
  Index warm_up = 10;  ///< steps to skip before recording; reduced if the run is too short
  Index steps = 10;    ///< consecutive steps to record; all steps of a shorter run
};

/// Record of some steps of a run on this rank: waits for data, each operation of the model in forward and backward,
/// gradient buckets, updates, and the loader's work. FitOptions::trace makes a fit fill it; `write_trace` and
/// `layer_times` evaluate it. Recorded steps on a GPU are slower: they do not replay CUDA graphs, and each mark between
/// operations takes time.
class Trace {
 public:
  /// @param options which steps a fit records
  explicit Trace(TraceOptions options = {}) : options_(options) {}
  Trace(Trace const&) = delete;
  Trace& operator=(Trace const&) = delete;
  ~Trace() { delete[] devices_; }

  /// Returns whether no step was recorded.
  [[nodiscard]] bool empty() const noexcept { return steps_ == 0; }
  /// Returns the first recorded step, counted from 1.
  [[nodiscard]] Index first_step() const noexcept { return first_; }
  /// Returns the number of recorded steps.
  [[nodiscard]] Index steps() const noexcept { return steps_; }
  /// Timelines of the training thread, of the loader's workers, and of each device of this process.
  [[nodiscard]] Timeline const& training() const noexcept { return training_; }
  [[nodiscard]] Timeline const& loading() const noexcept { return loading_; }  ///< of the loader's workers
  [[nodiscard]] int devices() const noexcept { return count_; }                ///< number of devices of this process
  /// Returns the timeline of a device in [0, devices()).
  [[nodiscard]] Timeline const& device(int number) const noexcept { return devices_[static_cast<std::size_t>(number)]; }
  /// Returns whether the first device's operations ran on the training thread.
  [[nodiscard]] bool on_host() const noexcept { return on_host_; }
  /// Returns the number of spans that exceeded the capacity.
  [[nodiscard]] Index left_out() const noexcept {
    Index left_out = training_.left_out() + loading_.left_out();
    for (int d = 0; d < count_; ++d) left_out += device(d).left_out();
    return left_out;
  }

  // ---- used by the trainer

  /// Returns the step at which to start recording, among the steps after `done` up to `all`.
  [[nodiscard]] Index plan(Index done, Index all) const noexcept {
    return done + 1 + std::min(options_.warm_up, std::max<Index>(0, all - done - options_.steps));
  }
  /// Returns the options of the constructor.
  [[nodiscard]] TraceOptions const& options() const noexcept { return options_; }
  /// Counts a recorded step.
  void count() noexcept { ++steps_; }
  /// Discards earlier records and starts recording at `step`.
  void begin(Index step, int devices, bool on_host) {
    first_ = step;
    steps_ = 0;
    on_host_ = on_host;
    training_.clear();
    loading_.clear();
    delete[] std::exchange(devices_, nullptr);
    count_ = 0;
    devices_ = new Timeline[devices > 0 ? static_cast<std::size_t>(devices) : 0];
    for (count_ = 0; count_ < devices; ++count_) device(count_).clear();
  }
  /// Returns the timeline to record into.
  [[nodiscard]] Timeline& training() noexcept { return training_; }
  /// Returns the timeline to record into.
  [[nodiscard]] Timeline& loading() noexcept { return loading_; }
  /// Returns the timeline to record into.
  [[nodiscard]] Timeline& device(int number) noexcept { return devices_[static_cast<std::size_t>(number)]; }

 private:
  TraceOptions options_;
  Index first_ = 0, steps_ = 0;
  bool on_host_ = true;
  Timeline training_, loading_;
  Timeline* devices_ = nullptr;
  int count_ = 0;  // of devices_
};

}}}  // namespace lockstep::train
