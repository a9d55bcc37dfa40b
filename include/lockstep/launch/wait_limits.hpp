// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI::launch {

/// How long a rank waits for others. One whose process is gone is noticed at once, whatever these say.
struct WaitLimits {
  double warn_seconds = 10;    ///< for one that is alive: then says, once per wait, for whom it waits
  double stall_seconds = 600;  ///< for one that is alive: then gives up with RankStalled; infinity never does
  /// For another host that cannot be reached, be it off or cut off: then its ranks are lost. At least 2.
  double silence_seconds = 15;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::launch
