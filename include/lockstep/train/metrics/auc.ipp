// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <lockstep/train/metrics/auc.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE double area_under_curve(std::vector<float> zeros, std::vector<float> others) {
  if (zeros.empty() || others.empty()) return 0;
  std::sort(zeros.begin(), zeros.end());
  std::sort(others.begin(), others.end());
  std::uint64_t twice_right = 0;
  std::size_t smaller = 0, not_larger = 0;
  for (float const logit : others) {
    while (smaller < zeros.size() && zeros[smaller] < logit) ++smaller;
    while (not_larger < zeros.size() && zeros[not_larger] <= logit) ++not_larger;
    twice_right += smaller + not_larger;
  }
  return static_cast<double>(twice_right) /
         (2 * static_cast<double>(zeros.size()) * static_cast<double>(others.size()));
}

}}}  // namespace lockstep::train::detail
