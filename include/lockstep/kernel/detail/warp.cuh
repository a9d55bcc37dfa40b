// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/detail/launch.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail { inline namespace LOCKSTEP_CUDA_ABI {

/// Returns the sum over a warp's lanes, in a fixed tree, with equal bits in each lane. All lanes must call it.
/// cub::WarpReduce returns it to the first lane only: the others would need a further shuffle.
template <class Scalar>
[[nodiscard]] __device__ Scalar warp_sum(Scalar value) noexcept {
  for (unsigned distance = warp / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(~0u, value, distance);
  return value;
}
/// Returns the largest value of a warp's lanes, or NaN if any is NaN.
template <class Scalar>
[[nodiscard]] __device__ Scalar warp_largest(Scalar value) noexcept {
  for (unsigned distance = warp / 2; distance > 0; distance /= 2) {
    Scalar const other = __shfl_xor_sync(~0u, value, distance);
    value = other > value || other != other ? other : value;
  }
  return value;
}

}  // namespace LOCKSTEP_CUDA_ABI
}}}  // namespace lockstep::kernel::detail
