// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/train/metrics/detail/binary_logits.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE std::vector<float> sorted(std::vector<float> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}}}  // namespace lockstep::train::detail
