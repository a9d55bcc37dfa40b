// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/write.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {

/// Rows that share one partial sum: some hundreds of chunks, so that many rows keep a whole GPU busy and their partial
/// sums are soon summed. Of the number of rows alone, so that no bit depends on the GPU.
[[nodiscard]] constexpr Index column_chunk(Index rows) noexcept { return std::max<Index>(64, (rows + 511) / 512); }

/// How many chunks that makes: at least one.
[[nodiscard]] constexpr Index column_chunks(Index rows) noexcept {
  return std::max<Index>(1, (rows + column_chunk(rows) - 1) / column_chunk(rows));
}

/// Where one sum over rows goes.
template <class T>
struct ColumnTarget {
  T* data;
  Write write;
};

/// How many elements `sum_columns` needs for the partial sums of one target.
[[nodiscard]] constexpr Index column_partials(Index rows, Index width) noexcept {
  return column_chunks(rows) == 1 ? 0 : column_chunks(rows) * width;
}

inline namespace LOCKSTEP_CUDA_ABI {

/// The sum over a block's warps, in order, of the lanes of a column; every thread of the column gets it.
template <class Sum>
[[nodiscard]] __device__ Sum sum_of_column(Sum value) noexcept {
  __shared__ Sum shared[warps_per_block][warp];
  __syncthreads();  // the last call's values have been read
  shared[threadIdx.x / warp][threadIdx.x % warp] = value;
  __syncthreads();
  Sum sum = 0;
  for (Index part = 0; part < warps_per_block; ++part) sum += shared[part][threadIdx.x % warp];
  return sum;
}

/// A column's sums over a block's chunk of rows, of which each warp has its own rows', in order: those of chunk c of
/// target t go to row t * chunks + c of `partial`, or, where that is null, to the targets.
template <class T, std::size_t targets>
__device__ void put_sums_of_chunk(Accumulate<T> (&sums)[targets], Index chunk, Index chunks, Index column, Index width,
                                  T* partial, ColumnTarget<T> first, ColumnTarget<T> second) noexcept {
  for (auto& sum : sums) sum = sum_of_column(sum);
  if (threadIdx.x >= warp || column >= width) return;
  for (std::size_t t = 0; t < targets; ++t) {
    auto const target = t == 0 ? first : second;
    auto* const to = partial ? partial + (static_cast<Index>(t) * chunks + chunk) * width : target.data;
    if (!partial && target.write == Write::add) sums[t] += static_cast<Accumulate<T>>(to[column]);
    to[column] = static_cast<T>(sums[t]);
  }
}

/// A block takes 32 columns of a chunk of rows: 8 threads a column, each every eighth row, then their sums in order.
template <class T, std::size_t targets, class Term>
LOCKSTEP_CUDA_KERNEL void sum_column_chunks(Index rows, Index width, Index chunk_rows, Term term, T* partial,
                                            ColumnTarget<T> first, ColumnTarget<T> second) {
  using Sum = Accumulate<T>;
  auto const tiles = (width + warp - 1) / warp, chunks = Index{gridDim.x} / tiles;
  auto const chunk = Index{blockIdx.x} / tiles, column = Index{blockIdx.x} % tiles * warp + lane();
  Sum sums[targets] = {};
  if (column < width)
    for (auto row = chunk * chunk_rows + Index{threadIdx.x} / warp, end = min(rows, (chunk + 1) * chunk_rows);
         row < end; row += warps_per_block)
      term(row, column, sums);
  put_sums_of_chunk(sums, chunk, chunks, column, width, partial, first, second);
}

/// A term of the sum over chunks: what they left.
template <class T, std::size_t targets>
struct OfChunk {
  T const* partial;
  Index chunks, width;

  __device__ void operator()(Index chunk, Index column, Accumulate<T> (&sums)[targets]) const {
    for (std::size_t t = 0; t < targets; ++t)
      sums[t] += static_cast<Accumulate<T>>(partial[(static_cast<Index>(t) * chunks + chunk) * width + column]);
  }
};

}  // namespace LOCKSTEP_CUDA_ABI

/// The sums over what the chunks left in `partial`, where there are several.
template <class T, std::size_t targets>
void finish_columns(char const* name, memory::Stream<CudaSpace> stream, Index chunks, Index width, T* partial,
                    ColumnTarget<T> first, ColumnTarget<T> second) {
  if (chunks > 1)
    launch_grid(name, stream, static_cast<unsigned>((width + warp - 1) / warp), threads_per_block,
                sum_column_chunks<T, targets, OfChunk<T, targets>>, chunks, width, chunks,
                OfChunk<T, targets>{partial, chunks, width}, static_cast<T*>(nullptr), first, second);
}

/// For every column: the sum over all rows of what term(row, column, sums) adds to sums[0], and to sums[1] where there
/// is a second target.
/// @shape partial [targets * column_partials(rows, width)], overwritten
/// @determinism bitwise: chunks fixed by shape, summed in order
template <class T, std::size_t targets, class Term>
void sum_columns(char const* name, memory::Stream<CudaSpace> stream, Index rows, Index width, Term const& term,
                 T* partial, ColumnTarget<T> first, ColumnTarget<T> second = {}) {
  auto const tiles = (width + warp - 1) / warp, chunks = column_chunks(rows);
  launch_grid(name, stream, static_cast<unsigned>(tiles * chunks), threads_per_block,
              sum_column_chunks<T, targets, Term>, rows, width, column_chunk(rows), term,
              chunks > 1 ? partial : nullptr, first, second);
  finish_columns<T, targets>(name, stream, chunks, width, partial, first, second);
}

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
