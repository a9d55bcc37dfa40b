// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>

#include <cmath>

#include <lockstep/kernel/detail/cuda_abi.cuh>

/// Functions that a device computes by one or two instructions. CUDA's own take three to six more, for results outside
/// the normal range or for the last bits.
namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

inline constexpr float log2_of_e = 1.44269504088896340736f;

inline namespace LOCKSTEP_CUDA_ABI {

/// Returns 2^x, with a relative error of about 2^-22; 0 for a result below 2^-126.
[[nodiscard]] __device__ inline float fast_exp2(float x) noexcept {
#if defined(__CUDA_ARCH__)
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
#else
  return std::exp2(x);
#endif
}

/// Returns e^x, with a relative error of about (|x| + 4) * 2^-24; 0 for a result below 2^-126.
[[nodiscard]] __device__ inline float fast_exp(float x) noexcept { return fast_exp2(x * log2_of_e); }

/// Returns the logarithm to base 2, with an absolute error of about 2^-22 for x near 1, else a relative one.
[[nodiscard]] __device__ inline float fast_log2(float x) noexcept {
#if defined(__CUDA_ARCH__)
  float logarithm;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(logarithm) : "f"(x));
  return logarithm;
#else
  return std::log2(x);
#endif
}

/// Returns 1 / x, with a relative error of at most 2^-23; 0 for a result below 2^-126.
[[nodiscard]] __device__ inline float fast_reciprocal(float x) noexcept {
#if defined(__CUDA_ARCH__)
  float quotient;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(quotient) : "f"(x));
  return quotient;
#else
  return 1 / x;
#endif
}

}  // namespace LOCKSTEP_CUDA_ABI
}}}  // namespace lockstep::kernel::detail
