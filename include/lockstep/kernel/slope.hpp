// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/tensor_view.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// The slope of the activation, and of its dropout, that made a layer's input x, for a backward pass that goes through
/// both at once. None by default.
template <class T, class Space>
struct Slope {
  TensorView<T const, 2, Space> factors{};  ///< [as x], kept by forward: what gelu needs
  Accumulate<T> positive{0};  ///< without factors: that of a positive x, 0 being that of others, as of relu

  [[nodiscard]] bool given() const noexcept { return factors.data || positive > 0; }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
