// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>

#include <lockstep/kernel/detail/cuda_abi.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail { inline namespace LOCKSTEP_CUDA_ABI {

/// Returns a * b, rounded by itself. nvcc would fuse it with an addition that follows, and bits would differ from the
/// host's.
[[nodiscard]] __device__ inline float rounded_product(float a, float b) noexcept { return __fmul_rn(a, b); }
[[nodiscard]] __device__ inline double rounded_product(double a, double b) noexcept { return __dmul_rn(a, b); }
/// Returns a + b, rounded by itself, for a product that was computed elsewhere.
[[nodiscard]] __device__ inline float rounded_sum(float a, float b) noexcept { return __fadd_rn(a, b); }
[[nodiscard]] __device__ inline double rounded_sum(double a, double b) noexcept { return __dadd_rn(a, b); }

}  // namespace LOCKSTEP_CUDA_ABI
}}}  // namespace lockstep::kernel::detail
