// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

/// Mean and spread of repeated measurements.
struct Statistic {
  double mean = std::numeric_limits<double>::quiet_NaN();  ///< nan without a measurement
  double deviation = 0;                                    ///< standard deviation of the sample; 0 for fewer than two
  std::size_t count = 0;                                   ///< measurements that are numbers

  /// Returns the statistic of the values that are numbers.
  [[nodiscard]] static Statistic of(std::span<double const> values);

  /// Returns whether there is a measurement.
  [[nodiscard]] bool is_known() const noexcept { return !std::isnan(mean); }
  /// Returns deviation / mean; 0 for a mean of 0.
  [[nodiscard]] double relative() const noexcept { return mean == 0 ? 0 : deviation / mean; }
  /// Returns the statistic of the values times a factor.
  [[nodiscard]] Statistic times(double factor) const noexcept {
    return {mean * factor, deviation * std::abs(factor), count};
  }
};

}}}  // namespace lockstep::scaling

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/scaling/study/statistic.ipp>
#endif
