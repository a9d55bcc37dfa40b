// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <utility>

#include <lockstep/core/clock.hpp>
#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Measures the processor time of a training thread in forward and backward. The thread's clock is a system call, so
/// not every short step is measured: two reads per micro-step take less than 0.1 % of the time.
class PassMeter {
 public:
  /// Begins with the next step. Without this call, nothing is measured.
  void start() noexcept { *this = PassMeter(true); }
  PassMeter() = default;

  void begin_pass() noexcept {
    if (measures_) began_ = Clock::thread_seconds();
  }
  /// Ends a pass, which took so many seconds.
  void end_pass(double seconds) noexcept {
    step_ += seconds;
    ++passes_;
    if (measures_) processor_ += Clock::thread_seconds() - began_;
  }
  void end_step() noexcept {
    all_ += step_;
    if (measures_) {
      measured_ += step_;
      auto const processor = processor_ - std::exchange(before_, processor_);
      if (++steps_ > 2) differences_ += std::abs(processor - last_);  // the first step gets memory
      last_ = processor;
      auto const wanted = step_ > 0 ? reads_seconds / least_share * passes_ / step_ : 0;
      left_ = static_cast<int>(std::min(wanted, most_steps - 1.0));
    } else {
      --left_;
    }
    measures_ = started_ && left_ == 0;
    step_ = passes_ = 0;
  }

  /// Returns whether the next step, or the one in progress, is measured.
  [[nodiscard]] bool measures() const noexcept { return measures_; }
  /// Returns the processor time of all passes. The rate of measured steps counts for all.
  [[nodiscard]] double processor_seconds() const noexcept {
    return measured_ > 0 ? processor_ * (all_ / measured_) : 0;
  }
  /// Returns the standard deviation of a step's processor time between steps.
  [[nodiscard]] double deviation_seconds() const noexcept {
    // For a normal distribution, from the mean difference of two values, which slow changes and outliers affect little.
    constexpr double deviations = 0.8862269254527580;  // sqrt(pi) / 2
    return steps_ > 2 ? deviations * differences_ / static_cast<double>(steps_ - 2) : 0;
  }

 private:
  explicit PassMeter(bool starts) : started_(starts), measures_(starts) {}

  static constexpr double reads_seconds = 1.1e-6;  // two reads of the clock, measured
  static constexpr double least_share = 1e-3;      // of the time
  static constexpr double most_steps = 16;         // of which one is measured

  bool started_ = false, measures_ = false;
  double began_ = 0, step_ = 0, passes_ = 0;        // of this pass, of this step
  double processor_ = 0, measured_ = 0, all_ = 0;   // seconds so far
  double before_ = 0, last_ = 0, differences_ = 0;  // processor seconds; differences between measured steps
  Index steps_ = 0;                                 // measured
  int left_ = 0;                                    // steps until the next one is measured
};

}}}  // namespace lockstep::train::detail
