// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>

#include <cmath>

#include <lockstep/kernel/activation_rules.hpp>
#include <lockstep/kernel/detail/cuda_abi.cuh>
#include <lockstep/kernel/detail/fast_math.cuh>
#include <lockstep/kernel/detail/rounded_product.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail { inline namespace LOCKSTEP_CUDA_ABI {

/// The host's normal_distribution, with its polynomial, in 20 instructions. Absolute errors are at most 8 * 2^-24 for
/// the integral and 6 * 2^-24 for the density: those of the host, of the power, of its argument and of the quotient.
/// Each operation is rounded or fused as written, so all kernels compute equal bits.
[[nodiscard]] __device__ inline Normal<float> device_normal_distribution(float x) noexcept {
  float const bell = fast_exp2(rounded_product(rounded_product(x, -0.72134752f), x));  // -log2(e) / 2
  float const t = fast_reciprocal(__fmaf_rn(0.32f, ::fabsf(x), 1));
  float p = __fmaf_rn(-0.021623132365048776f, t, 0.09793521531472213f);
  p = __fmaf_rn(p, t, -0.1516076951664241f);
  p = __fmaf_rn(p, t, 0.07046826130300983f);
  p = __fmaf_rn(p, t, -0.012533999247024002f);
  p = __fmaf_rn(p, t, 0.05979932621726866f);
  p = __fmaf_rn(p, t, 0.08759353036965405f);
  p = __fmaf_rn(p, t, 0.11464702820340768f);
  p = __fmaf_rn(p, t, 0.12765991008965782f);
  p = __fmaf_rn(p, t, 0.12766153768853974f);
  float const tail = rounded_product(rounded_product(bell, t), p);
  return {x < 0 ? tail : rounded_sum(1, -tail), rounded_product(0.3989422804014327f, bell)};
}
[[nodiscard]] __device__ inline Normal<double> device_normal_distribution(double x) noexcept {
  return {0.5 * ::erfc(-0.7071067811865476 * x), 0.3989422804014327 * ::exp(-0.5 * x * x)};
}

/// Gelu with the device's functions.
struct DeviceGelu {
  template <class Scalar>
  [[nodiscard]] __device__ Scalar operator()(Scalar x) const noexcept {
    return rounded_product(x, device_normal_distribution(x).integral);
  }
  /// Has equal bits in every kernel: nvcc could fuse the slope's sum with either product.
  template <class Scalar>
  [[nodiscard]] __device__ ActivationAt<Scalar> at(Scalar x) const noexcept {
    auto const normal = device_normal_distribution(x);
    return {rounded_product(x, normal.integral), rounded_sum(normal.integral, rounded_product(x, normal.density))};
  }
};

/// Returns the rule that computes an activation on devices.
template <class Rule>
[[nodiscard]] __device__ Rule device_rule(Rule rule) noexcept {
  return rule;
}
[[nodiscard]] __device__ inline DeviceGelu device_rule(Gelu) noexcept { return {}; }

}  // namespace LOCKSTEP_CUDA_ABI
}}}  // namespace lockstep::kernel::detail
