// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI {

/// What a backward kernel does with the gradient that already stands at its target.
enum class Write {
  overwrite,  ///< the target holds nothing of value yet
  add,        ///< an earlier use of the same tensor, or an earlier micro-batch, wrote there
};

}  // namespace lockstep::inline LOCKSTEP_ABI
