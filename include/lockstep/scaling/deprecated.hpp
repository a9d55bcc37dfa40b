// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>
#include <lockstep/scaling/bottleneck.hpp>
#include <lockstep/scaling/step_profile.hpp>

/// Former names of this folder's types and functions, until the next version.
namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

using Verdict [[deprecated("scaling::Bottleneck")]] = Bottleneck;

[[nodiscard, deprecated("scaling::find_bottleneck")]] inline Bottleneck judge(StepProfile const& profile) {
  return find_bottleneck(profile);
}

}}}  // namespace lockstep::scaling
