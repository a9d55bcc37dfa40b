// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <string>

#include <lockstep/scaling/detail/device_limit.hpp>
#include <lockstep/scaling/step_profile.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

/// Bottleneck of a run, as a word and as a sentence.
struct Bottleneck {
  /// The largest share of a step: "compute", "communication", "optimizer" or "data". For a measured GPU,
  /// "launches", "small kernels", "memory bandwidth" or "arithmetic" instead of "compute".
  std::string bound;
  std::string summary;         ///< with the remedy
  std::string cause = "none";  ///< name of the largest LostTime that the run itself can change; else "other programs"
};

/// Returns the phase that takes most of rank 0's steps. If the others wait for one rank for at least a fifth of a step,
/// the sentence names this rank and its slow phase. If
/// steps lose time as find_lost_time says, the sentence gives its evidence instead. If a GPU computes most of the time,
/// says what limits it.
[[nodiscard]] Bottleneck find_bottleneck(StepProfile const& profile);

}}}  // namespace lockstep::scaling

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/scaling/bottleneck.ipp>
#endif
