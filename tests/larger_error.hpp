// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep_test {

/// Returns the larger of two errors, the second of which may be NaN: that counts as infinite. std::max would ignore it.
[[nodiscard]] inline double larger_error(double most, double error) noexcept {
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(most, error);
}

}  // namespace lockstep_test
