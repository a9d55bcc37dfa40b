// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Activation fused into the kernel of a linear map or a normalization.
enum class Activation {
  none,  ///< no activation
  relu,  ///< the rectified linear unit, see Relu
  gelu,  ///< the Gaussian error linear unit, see Gelu; linear maps only
};

}}}  // namespace lockstep::kernel
