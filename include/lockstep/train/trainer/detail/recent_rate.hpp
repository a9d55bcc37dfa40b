// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Samples per second of the last second or so: of the last ten parts, each of 0.1 seconds or one step if that is
/// longer. Allocates nothing.
class RecentRate {
 public:
  void add(double samples, double seconds) noexcept {
    auto& part = parts_[at_];
    part.samples += samples;
    part.seconds += seconds;
    if (part.seconds < part_seconds) return;
    at_ = (at_ + 1) % parts_.size();
    parts_[at_] = {};
  }
  /// Returns the rate, or 0 before the first step.
  [[nodiscard]] double value() const noexcept {
    Part all;
    for (auto const& part : parts_) {
      all.samples += part.samples;
      all.seconds += part.seconds;
    }
    return all.seconds > 0 ? all.samples / all.seconds : 0;
  }

 private:
  struct Part {
    double samples = 0, seconds = 0;
  };
  static constexpr double part_seconds = 0.1;

  std::array<Part, 11> parts_{};  // the current one is not complete
  std::size_t at_ = 0;
};

}}}  // namespace lockstep::train::detail
