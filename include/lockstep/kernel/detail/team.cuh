// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/detail/warp.cuh>

namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {
inline namespace LOCKSTEP_CUDA_ABI {

/// The threads that work on one row together: a warp. All of them must call what sums or compares.
struct WarpTeam {
  static constexpr Index size = warp;

  /// The first row of this team, and how many teams there are.
  [[nodiscard]] static __device__ Index first() noexcept { return grid_warp(); }
  [[nodiscard]] static __device__ Index count() noexcept { return grid_warps(); }
  [[nodiscard]] static __device__ Index member() noexcept { return lane(); }
  /// Nobody goes on before all have come, and what was done before is done. Sums, which exchange registers, order no
  /// memory.
  static __device__ void meet() noexcept { __syncwarp(); }
  template <class T>
  [[nodiscard]] static __device__ T sum(T value) noexcept {
    return warp_sum(value);
  }
  template <class T>
  [[nodiscard]] static __device__ T largest(T value) noexcept {
    return warp_largest(value);
  }
};

/// The same with a whole block, for rows that are long.
struct BlockTeam {
  static constexpr Index size = threads_per_block;

  [[nodiscard]] static __device__ Index first() noexcept { return blockIdx.x; }
  [[nodiscard]] static __device__ Index count() noexcept { return gridDim.x; }
  [[nodiscard]] static __device__ Index member() noexcept { return threadIdx.x; }
  static __device__ void meet() noexcept { __syncthreads(); }
  template <class T>
  [[nodiscard]] static __device__ T sum(T value) noexcept {
    return combine(warp_sum(value), [](T a, T b) { return a + b; });
  }
  template <class T>
  [[nodiscard]] static __device__ T largest(T value) noexcept {
    return combine(warp_largest(value), [](T a, T b) { return b > a || b != b ? b : a; });
  }

 private:
  /// Of one value per warp, in order; every thread gets the result.
  template <class T, class F>
  [[nodiscard]] static __device__ T combine(T of_warp, F const& f) noexcept {
    __shared__ T values[warps_per_block];
    __syncthreads();  // the last call's values have been read
    if (lane() == 0) values[threadIdx.x / warp] = of_warp;
    __syncthreads();
    T result = values[0];
    for (Index w = 1; w < warps_per_block; ++w) result = f(result, values[w]);
    return result;
  }
};

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
