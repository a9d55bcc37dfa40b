// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// What a linear map's or a normalisation's outputs go through while they are at hand.
enum class Activation {
  none,  ///< nothing
  relu,  ///< the rectified linear unit: see Relu
  gelu,  ///< the Gaussian error linear unit: see Gelu; only of linear maps
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
