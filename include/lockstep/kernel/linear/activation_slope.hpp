// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/tensor_view.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Slope of the activation and dropout that computed a layer's input x. A backward pass through both the
/// layer and the activation multiplies by it. None by default.
template <class Scalar, class Space>
struct ActivationSlope {
  TensorView<Scalar const, 2, Space> factors{};  ///< [as x], kept by the forward pass, if keeps_slope(activation)
  Accumulate<Scalar> positive{0};  ///< without factors: slope of a positive x; other x have slope 0, as for relu

  /// Returns whether there is a slope.
  [[nodiscard]] bool given() const noexcept { return factors.data || positive > 0; }
};

}}}  // namespace lockstep::kernel
