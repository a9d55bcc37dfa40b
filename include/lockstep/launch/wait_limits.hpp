// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

/// Time limits of a rank that waits for others. A rank whose process is gone is detected at once, regardless of the
/// limits.
struct WaitLimits {
  double warn_seconds = 10;    ///< for a live rank: then warns, once per wait, and names the awaited ranks
  double stall_seconds = 600;  ///< for a live rank: then throws RankStalled; infinity waits forever
  /// For another host that cannot be reached: its ranks are lost after this time. At least 2.
  double silence_seconds = 15;
};

}}}  // namespace lockstep::launch
