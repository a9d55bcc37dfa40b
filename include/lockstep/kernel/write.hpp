// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Whether a backward kernel overwrites its target or adds to the gradient there.
enum class Write {
  overwrite,  ///< the target has no value yet
  add,        ///< an earlier use of the same tensor, or an earlier micro-batch, wrote there
};

}}  // namespace lockstep
