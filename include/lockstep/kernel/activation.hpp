// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Activation fused into the kernel of a linear map or a normalization.
enum class Activation {
  none,       ///< no activation
  relu,       ///< the rectified linear unit, see Relu
  gelu,       ///< the Gaussian error linear unit, see Gelu; linear maps only
  gelu_tanh,  ///< its approximation by the hyperbolic tangent, see GeluTanh; linear maps only
  silu,       ///< the sigmoid linear unit, see Silu; linear maps only
};

/// Returns whether the backward pass needs the activation's slope: y does not determine it.
[[nodiscard]] constexpr bool keeps_slope(Activation activation) noexcept {
  return activation == Activation::gelu || activation == Activation::gelu_tanh || activation == Activation::silu;
}

}}}  // namespace lockstep::kernel
