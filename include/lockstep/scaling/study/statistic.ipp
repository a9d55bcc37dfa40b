// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/scaling/study/statistic.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

LOCKSTEP_INLINE Statistic Statistic::of(std::span<double const> values) {
  double sum = 0;
  std::size_t count = 0;
  for (double const value : values) {
    if (std::isnan(value)) continue;
    sum += value;
    ++count;
  }
  if (count == 0) return {};
  Statistic out{sum / static_cast<double>(count), 0, count};
  double squares = 0;
  for (double const value : values)
    if (!std::isnan(value)) squares += (value - out.mean) * (value - out.mean);
  if (count > 1) out.deviation = std::sqrt(squares / static_cast<double>(count - 1));
  return out;
}

}}}  // namespace lockstep::scaling
