// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/write.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {

/// Rows that share one partial sum. Fixed, so that no bit depends on the GPU.
inline constexpr Index column_chunk = 256;

/// Where one sum over rows goes.
template <class T>
struct ColumnTarget {
  T* data;
  Write write;
};

/// How many elements `sum_columns` needs for the partial sums of one target.
[[nodiscard]] constexpr Index column_partials(Index rows, Index width) noexcept {
  return rows <= column_chunk ? 0 : (rows + column_chunk - 1) / column_chunk * width;
}

inline namespace LOCKSTEP_CUDA_ABI {

/// A block takes 32 columns of a chunk: 8 threads a column, each every eighth row, then their sums in order.
template <class T, std::size_t targets, class Term>
LOCKSTEP_CUDA_KERNEL void sum_column_chunks(Index rows, Index width, Index chunks, Term term, T* partial,
                                            ColumnTarget<T> first, ColumnTarget<T> second) {
  using Sum = Accumulate<T>;
  __shared__ Sum shared[targets][warps_per_block][warp];
  auto const tiles = (width + warp - 1) / warp;
  auto const chunk = Index{blockIdx.x} / tiles, column = Index{blockIdx.x} % tiles * warp + lane();
  auto const part = Index{threadIdx.x} / warp;
  Sum sums[targets] = {};
  if (column < width)
    for (auto row = chunk * column_chunk + part, end = min(rows, (chunk + 1) * column_chunk); row < end;
         row += warps_per_block)
      term(row, column, sums);
  for (std::size_t i = 0; i < targets; ++i) shared[i][part][lane()] = sums[i];
  __syncthreads();
  if (part >= static_cast<Index>(targets) || column >= width) return;
  Sum sum = 0;
  for (Index p = 0; p < warps_per_block; ++p) sum += shared[part][p][lane()];
  if (chunks > 1) {
    partial[(part * chunks + chunk) * width + column] = static_cast<T>(sum);
  } else {
    auto const target = part == 0 ? first : second;
    if (target.write == Write::add) sum += static_cast<Sum>(target.data[column]);
    target.data[column] = static_cast<T>(sum);
  }
}

/// A thread takes a column of a target, over its chunks in order.
template <class T>
LOCKSTEP_CUDA_KERNEL void sum_column_partials(Index width, Index chunks, Index targets, T const* partial,
                                              ColumnTarget<T> first, ColumnTarget<T> second) {
  using Sum = Accumulate<T>;
  for (auto i = grid_thread(); i < targets * width; i += grid_threads()) {
    auto const target = i < width ? first : second;
    auto const column = i % width;
    Sum sum = target.write == Write::add ? static_cast<Sum>(target.data[column]) : Sum{0};
    for (Index chunk = 0; chunk < chunks; ++chunk)
      sum += static_cast<Sum>(partial[(i / width * chunks + chunk) * width + column]);
    target.data[column] = static_cast<T>(sum);
  }
}

}  // namespace LOCKSTEP_CUDA_ABI

/// For every column: the sum over all rows of what term(row, column, sums) adds to sums[0], and to sums[1] where there
/// is a second target.
/// @shape partial [targets * column_partials(rows, width)], overwritten
/// @determinism bitwise: chunks fixed by shape, summed in order
template <class T, std::size_t targets, class Term>
void sum_columns(char const* name, memory::Stream<CudaSpace> stream, Index rows, Index width, Term const& term,
                 T* partial, ColumnTarget<T> first, ColumnTarget<T> second = {}) {
  auto const count = static_cast<Index>(targets), tiles = (width + warp - 1) / warp;
  auto const chunks = std::max<Index>(1, (rows + column_chunk - 1) / column_chunk);
  launch_grid(name, stream, static_cast<unsigned>(tiles * chunks), threads_per_block,
              sum_column_chunks<T, targets, Term>, rows, width, chunks, term, partial, first, second);
  if (chunks > 1)
    launch(name, stream, count * width, sum_column_partials<T>, width, chunks, count, partial, first, second);
}

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
