// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/shared_memory/control_page.hpp>

/// Former names of this folder's public constants, for one version. `OnSignal::ask` is in options.hpp.

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

[[deprecated("launch::max_local_ranks")]] inline constexpr int most_local_ranks = max_local_ranks;

}}}  // namespace lockstep::launch
