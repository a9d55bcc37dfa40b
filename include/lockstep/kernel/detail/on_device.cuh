// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>

#include <cmath>

#include <lockstep/kernel/activation_rules.hpp>
#include <lockstep/kernel/detail/cuda_abi.cuh>
#include <lockstep/kernel/detail/product.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail { inline namespace LOCKSTEP_CUDA_ABI {

/// The host's normal_distribution with the device's own functions; erfcf has an error of a few units in the last place.
[[nodiscard]] __device__ inline Normal<float> device_normal_distribution(float x) noexcept {
  return {0.5f * ::erfcf(-0.70710678f * x), 0.39894228f * ::expf(-0.5f * x * x)};
}
[[nodiscard]] __device__ inline Normal<double> device_normal_distribution(double x) noexcept {
  return {0.5 * ::erfc(-0.7071067811865476 * x), 0.3989422804014327 * ::exp(-0.5 * x * x)};
}

/// Gelu with the device's functions.
struct GeluOnDevice {
  template <class T>
  [[nodiscard]] __device__ T operator()(T x) const noexcept {
    return x * device_normal_distribution(x).integral;
  }
  /// Has equal bits in every kernel: nvcc could fuse the slope's sum with either product.
  template <class T>
  [[nodiscard]] __device__ ActivationAt<T> at(T x) const noexcept {
    auto const normal = device_normal_distribution(x);
    return {x * normal.integral, normal.integral + product(x, normal.density)};
  }
};

/// Returns the rule that computes an activation on devices.
template <class Rule>
[[nodiscard]] __device__ Rule on_device(Rule rule) noexcept {
  return rule;
}
[[nodiscard]] __device__ inline GeluOnDevice on_device(Gelu) noexcept { return {}; }

}  // namespace LOCKSTEP_CUDA_ABI
}}}  // namespace lockstep::kernel::detail
