// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// The three passes of a convolution's training step.
enum class ConvolutionPass {
  forward,  ///< y from x and the weight
  data,     ///< dx from dy and the weight
  weight,   ///< dweight from x and dy
};

}}}  // namespace lockstep::kernel::detail
