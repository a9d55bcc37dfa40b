// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Returns the rows that share one partial sum. Gives some hundreds of chunks, so that many rows occupy a whole GPU and
/// the partial sums are soon summed. Depends only on the number of rows, so that no bit depends on the GPU.
[[nodiscard]] constexpr Index column_chunk(Index rows) noexcept { return std::max<Index>(64, (rows + 511) / 512); }

/// Returns the number of such chunks, at least one.
[[nodiscard]] constexpr Index column_chunks(Index rows) noexcept {
  return std::max<Index>(1, (rows + column_chunk(rows) - 1) / column_chunk(rows));
}

/// Destination of one sum over rows.
template <class T>
struct ColumnTarget {
  T* data;
  Write write;
};

/// Returns the number of elements that `sum_columns` needs for the partial sums of one target.
[[nodiscard]] constexpr Index column_partials(Index rows, Index width) noexcept {
  return column_chunks(rows) == 1 ? 0 : column_chunks(rows) * width;
}

inline namespace LOCKSTEP_CUDA_ABI {

/// Returns the sum of a column over a block's warps, in order, to each thread of the column.
template <class Sum>
[[nodiscard]] __device__ Sum sum_of_column(Sum value) noexcept {
  __shared__ Sum shared[warps_per_block][warp];
  __syncthreads();  // wait until the last call's values were read
  shared[threadIdx.x / warp][threadIdx.x % warp] = value;
  __syncthreads();
  Sum sum = 0;
  for (Index part = 0; part < warps_per_block; ++part) sum += shared[part][threadIdx.x % warp];
  return sum;
}

/// Writes a column's sums over a block's chunk of rows; each warp has its own rows' sum, and they are added in order.
/// Sums of chunk c for target t go to row t * chunks + c of `partial`, or to the targets if `partial` is null.
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

/// One block sums 32 columns of a chunk of rows. Each of 8 threads per column sums every eighth row, then their sums
/// are added in order.
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

/// Term of the sum over chunks: the chunks' partial sums.
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

/// Sums the chunks' partial sums, if there are several chunks.
template <class T, std::size_t targets>
void finish_columns(char const* name, memory::Stream<CudaSpace> stream, Index chunks, Index width, T* partial,
                    ColumnTarget<T> first, ColumnTarget<T> second) {
  if (chunks > 1)
    launch_grid(name, stream, static_cast<unsigned>((width + warp - 1) / warp), threads_per_block,
                sum_column_chunks<T, targets, OfChunk<T, targets>>, chunks, width, chunks,
                OfChunk<T, targets>{partial, chunks, width}, static_cast<T*>(nullptr), first, second);
}

/// Sums each column over all rows. term(row, column, sums) adds to sums[0], and to sums[1] if there is a second target.
/// @shape partial [targets * column_partials(rows, width)], overwritten
/// @determinism bitwise: only the shape determines the chunks, which are summed in order
template <class T, std::size_t targets, class Term>
void sum_columns(char const* name, memory::Stream<CudaSpace> stream, Index rows, Index width, Term const& term,
                 T* partial, ColumnTarget<T> first, ColumnTarget<T> second = {}) {
  auto const tiles = (width + warp - 1) / warp, chunks = column_chunks(rows);
  launch_grid(name, stream, static_cast<unsigned>(tiles * chunks), threads_per_block,
              sum_column_chunks<T, targets, Term>, rows, width, column_chunk(rows), term,
              chunks > 1 ? partial : nullptr, first, second);
  finish_columns<T, targets>(name, stream, chunks, width, partial, first, second);
}

}}}  // namespace lockstep::kernel::detail
