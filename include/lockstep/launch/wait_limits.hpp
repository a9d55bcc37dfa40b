// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI::launch {

/// How long a rank waits for others that are alive. One that is gone is noticed at once, whatever these say.
struct WaitLimits {
  double warn_seconds = 10;    ///< then says, once per wait, for whom it waits
  double stall_seconds = 600;  ///< then gives up with RankStalled; infinity never does
};

}  // namespace lockstep::inline LOCKSTEP_ABI::launch
