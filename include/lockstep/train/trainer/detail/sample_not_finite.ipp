// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/trainer/detail/sample_not_finite.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE std::string not_finite_text(std::string const& sample, int member) {
  return sample + " holds an infinity or a NaN in its member " + std::to_string(member) + " (counted from 0)";
}

}}}  // namespace lockstep::train::detail
