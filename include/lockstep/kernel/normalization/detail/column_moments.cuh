// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/sum_columns.cuh>
#include <lockstep/kernel/normalization/detail/moments.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail { inline namespace LOCKSTEP_CUDA_ABI {

/// Moments of one column over some rows.
template <class Sum>
struct ColumnMoments {
  Sum count, mean, squares;
};

/// Returns the moments of a column over rows [begin, end), or over those that `counts` accepts unless `all` count. Each
/// of a block's 8 warps reads every eighth row, in two passes: the mean, and the squares of the differences from it. A
/// column after `width` is not read. All threads of the block must call it.
template <class Scalar, class Counts>
[[nodiscard]] __device__ ColumnMoments<Accumulate<Scalar>> moments_of_rows(Scalar const* x, Index width, Index begin,
                                                                           Index end, Index column, bool all,
                                                                           Counts const& counts) noexcept {
  using Sum = Accumulate<Scalar>;
  auto const first = column < width ? begin + Index{threadIdx.x} / warp : end;
  Sum sum = 0, rest = 0, squares = 0, count = 0;
  for (auto row = first; row < end; row += warps_per_block) {
    if (!counts(row)) continue;
    sum += static_cast<Sum>(x[row * width + column]);
    ++count;
  }
  count = all ? static_cast<Sum>(end - begin) : sum_of_column(count);
  Sum const mean = sum_of_column(sum) / count;  // NaN without rows, which no merge reads
  for (auto row = first; row < end; row += warps_per_block) {
    if (!counts(row)) continue;
    Sum const difference = static_cast<Sum>(x[row * width + column]) - mean;
    rest += difference;  // the rounding error of the first sum
    squares += difference * difference;
  }
  rest = sum_of_column(rest);
  squares = sum_of_column(squares);
  return {count, mean + rest / count, squares - rest * rest / count};
}

/// Returns the moments of all lanes of a warp, merged in a fixed tree, as in warp_sum. Lanes may differ in the last
/// bit. cub::WarpReduce, which leaves them to the first lane, takes a fifth more instructions.
[[nodiscard]] __device__ inline Moments merged_by_warp(Moments moments) noexcept {
  for (unsigned distance = warp / 2; distance > 0; distance /= 2) {
    Moments const other{__shfl_xor_sync(~0u, moments.count, distance), __shfl_xor_sync(~0u, moments.mean, distance),
                        __shfl_xor_sync(~0u, moments.squares, distance)};
    moments.merge(other);
  }
  return moments;
}

}  // namespace LOCKSTEP_CUDA_ABI
}}}  // namespace lockstep::kernel::detail
