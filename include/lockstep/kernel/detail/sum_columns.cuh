// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/detail/vectorized_access.cuh>
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
template <class Scalar>
struct ColumnTarget {
  Scalar* data;
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
template <class Scalar, std::size_t targets>
__device__ void put_sums_of_chunk(Accumulate<Scalar> (&sums)[targets], Index chunk, Index chunks, Index column,
                                  Index width, Scalar* partial, ColumnTarget<Scalar> first,
                                  ColumnTarget<Scalar> second) noexcept {
  for (auto& sum : sums) sum = sum_of_column(sum);
  if (threadIdx.x >= warp || column >= width) return;
  for (std::size_t t = 0; t < targets; ++t) {
    auto const target = t == 0 ? first : second;
    auto* const to = partial ? partial + (static_cast<Index>(t) * chunks + chunk) * width : target.data;
    if (!partial && target.write == Write::add) sums[t] += static_cast<Accumulate<Scalar>>(to[column]);
    to[column] = static_cast<Scalar>(sums[t]);
  }
}

/// One block sums 32 columns of a chunk of rows. Each of 8 threads per column sums every eighth row, then their sums
/// are added in order. cub::DeviceSegmentedReduce sums contiguous elements: a warp would read 32 rows for one column,
/// each in a sector of its own.
template <class Scalar, std::size_t targets, class Term>
LOCKSTEP_CUDA_KERNEL void sum_column_chunks(Index rows, Index width, Index chunk_rows, Term term, Scalar* partial,
                                            ColumnTarget<Scalar> first, ColumnTarget<Scalar> second) {
  using Sum = Accumulate<Scalar>;
  auto const tiles = (width + warp - 1) / warp, chunks = Index{gridDim.x} / tiles;
  auto const chunk = Index{blockIdx.x} / tiles, column = Index{blockIdx.x} % tiles * warp + lane();
  Sum sums[targets] = {};
  if (column < width)
    for (auto row = chunk * chunk_rows + Index{threadIdx.x} / warp, end = min(rows, (chunk + 1) * chunk_rows);
         row < end; row += warps_per_block)
      term(row, column, sums);
  put_sums_of_chunk(sums, chunk, chunks, column, width, partial, first, second);
}

/// Threads of a block that sums chunks.
inline constexpr unsigned finishing_threads = 1024;

/// Sums the chunks' partial sums. One block sums 32 columns of one target. Each of 32 threads per column sums every
/// 32nd chunk, then their sums are added in order.
template <class Scalar>
LOCKSTEP_CUDA_KERNEL void __launch_bounds__(finishing_threads)
    sum_chunks_of_columns(Index chunks, Index width, Scalar const* partial, ColumnTarget<Scalar> first,
                          ColumnTarget<Scalar> second, ColumnTarget<Scalar> third) {
  using Sum = Accumulate<Scalar>;
  constexpr int warps = finishing_threads / warp, at_once = 8;
  __shared__ Sum shared[warps][warp];
  auto const target = blockIdx.y == 0 ? first : blockIdx.y == 1 ? second : third;
  auto const column = Index{blockIdx.x} * warp + lane();
  auto const* const from = partial + Index{blockIdx.y} * chunks * width + column;
  Sum sum = 0;
  for (Index chunk = threadIdx.x / warp; column < width && chunk < chunks; chunk += Index{warps} * at_once) {
    Sum values[at_once];  // independent loads
    for (int i = 0; i < at_once; ++i)
      values[i] = chunk + i * warps < chunks ? static_cast<Sum>(from[(chunk + i * warps) * width]) : Sum{0};
    for (int i = 0; i < at_once; ++i) sum += values[i];
  }
  shared[threadIdx.x / warp][lane()] = sum;
  __syncthreads();
  if (threadIdx.x >= warp || column >= width) return;
  sum = 0;
  for (auto const& of_warp : shared) sum += of_warp[lane()];
  if (target.write == Write::add) sum += static_cast<Sum>(target.data[column]);
  target.data[column] = static_cast<Scalar>(sum);
}

/// Sums of a warp's columns in shared memory, of which a lane has `size` adjacent ones. The padding gives each lane a
/// bank of its own, both if lanes access their j-th column and if they access adjacent columns.
template <class Sum, int size>
struct ColumnsOfWarp {
  Sum sums[static_cast<std::size_t>(size)][warp + warp / static_cast<unsigned>(size)];

  [[nodiscard]] __device__ Sum& of(int lane, int j) noexcept { return sums[j][lane]; }
  [[nodiscard]] __device__ Sum column(int c) const noexcept { return sums[c % size][c / size]; }
};

/// Part of a row that has elements: `data`[0, end). The others count as zero.
template <class Scalar>
struct RowStart {
  Scalar const* data;
  Index end;
};
/// The rows of a matrix.
template <class Scalar>
struct MatrixRows {
  Scalar const* x;
  Index width;

  template <std::size_t count>
  __device__ void find(Index row, Index step, Index last, RowStart<Scalar> (&parts)[count]) const noexcept {
    for_constants<static_cast<int>(count)>([&](auto i) { parts[i] = {x + min(row + i * step, last) * width, width}; });
  }
};

/// Sums columns over a chunk of rows. all_rows.find(row, step, last, parts) sets parts[i] to the part of row
/// min(row + i * step, last). `lanes` threads, a power of two, process adjacent groups of 16 bytes of a row; the
/// block's other threads process further rows. A thread loads its groups of eight rows at once: whole ones if all are
/// `wide`, otherwise element by element, with equal results. Block y sums the y-th matrix.
template <class Scalar, bool wide, class Rows>
LOCKSTEP_CUDA_KERNEL void __launch_bounds__(threads_per_block, wide ? 3 : 1)
    sum_matrix_chunks(Index rows, Index width, int lanes, Index chunk_rows, Rows all_rows, Accumulate<Scalar>* partial,
                      ColumnTarget<Accumulate<Scalar>> to_first, ColumnTarget<Accumulate<Scalar>> to_second,
                      ColumnTarget<Accumulate<Scalar>> to_third) {
  using Sum = Accumulate<Scalar>;
  constexpr int size = elements_per_access<Scalar>, at_once = 8;
  __shared__ ColumnsOfWarp<Sum, size> shared[warps_per_block];
  auto const columns = Index{lanes} * size, tiles = (width + columns - 1) / columns;
  auto const chunk = Index{blockIdx.x} / tiles, tile = Index{blockIdx.x} % tiles * columns;
  auto const matrix = Index{blockIdx.y}, chunks = Index{gridDim.x} / tiles;
  auto const first = tile + (static_cast<int>(threadIdx.x) & (lanes - 1)) * size;
  auto const end = min(rows, (chunk + 1) * chunk_rows);
  auto const step = Index{threads_per_block} / lanes;
  Sum sums[static_cast<std::size_t>(size)] = {};
  for (auto row = chunk * chunk_rows + static_cast<int>(threadIdx.x) / lanes; row < end && first < width;
       row += at_once * step) {
    uint4 loaded[at_once];
    Scalar elements[static_cast<std::size_t>(size)];
    RowStart<Scalar> parts[at_once];
    all_rows.find(matrix * rows + row, step, matrix * rows + end - 1, parts);
    for_constants<at_once>([&](auto i) {
      auto const valid = row + i * step < end ? parts[i].end - first : Index{0};
      if constexpr (wide) {
        loaded[i] = valid > 0 ? *reinterpret_cast<uint4 const*>(parts[i].data + first) : uint4{};
      } else {
        for (int j = 0; j < size; ++j) elements[j] = j < valid ? parts[i].data[first + j] : Scalar{};
        std::memcpy(&loaded[i], elements, sizeof elements);
      }
    });
    for_constants<at_once>([&](auto i) {
      std::memcpy(static_cast<void*>(elements), &loaded[i], sizeof elements);
      for (int j = 0; j < size; ++j) sums[j] += static_cast<Sum>(elements[j]);
    });
  }
  for (int j = 0; j < size; ++j) {
    for (int distance = lanes; distance < static_cast<int>(warp); distance *= 2)
      sums[j] += __shfl_xor_sync(~0u, sums[j], static_cast<unsigned>(distance));
    if (lane() < lanes) shared[threadIdx.x / warp].of(static_cast<int>(lane()), j) = sums[j];
  }
  __syncthreads();
  auto const to = matrix == 0 ? to_first : matrix == 1 ? to_second : to_third;
  for (auto c = static_cast<int>(threadIdx.x); c < columns && tile + c < width;
       c += static_cast<int>(threads_per_block)) {
    Sum sum = 0;
    for (auto const& of_warp : shared) sum += of_warp.column(c);
    auto* const at = (partial ? partial + (matrix * chunks + chunk) * width : to.data) + tile + c;
    *at = !partial && to.write == Write::add ? *at + sum : sum;
  }
}

}  // namespace LOCKSTEP_CUDA_ABI

/// Sums the chunks' partial sums, if there are several chunks.
template <class Scalar, std::size_t targets>
void finish_columns(char const* name, memory::Stream<CudaSpace> stream, Index chunks, Index width, Scalar* partial,
                    ColumnTarget<Scalar> first, ColumnTarget<Scalar> second = {}, ColumnTarget<Scalar> third = {}) {
  if (chunks > 1)
    launch_grid(name, stream, {static_cast<unsigned>((width + warp - 1) / warp), static_cast<unsigned>(targets)},
                finishing_threads, sum_chunks_of_columns<Scalar>, chunks, width, static_cast<Scalar const*>(partial),
                first, second, third);
}

/// Sums each column over all rows. term(row, column, sums) adds to sums[0], and to sums[1] if there is a second target.
/// @shape partial [targets * column_partials(rows, width)], overwritten
/// @determinism bitwise: only the shape determines the chunks, which are summed in order
template <class Scalar, std::size_t targets, class Term>
void sum_columns(char const* name, memory::Stream<CudaSpace> stream, Index rows, Index width, Term const& term,
                 Scalar* partial, ColumnTarget<Scalar> first, ColumnTarget<Scalar> second = {}) {
  auto const tiles = (width + warp - 1) / warp, chunks = column_chunks(rows);
  launch_grid(name, stream, static_cast<unsigned>(tiles * chunks), threads_per_block,
              sum_column_chunks<Scalar, targets, Term>, rows, width, column_chunk(rows), term,
              chunks > 1 ? partial : nullptr, first, second);
  finish_columns<Scalar, targets>(name, stream, chunks, width, partial, first, second);
}

/// Sums each column over all rows, whose elements `all_rows` finds. `wide`: all rows begin at multiples of 16 bytes and
/// have whole groups of 16 bytes. Sums up to three lists of rows in one launch, each to its own target; they are stored
/// one after the other.
/// @shape partial [lists * column_partials(rows, width)], overwritten
/// @determinism bitwise: only the shape and the element type determine the chunks, which are summed in order
template <class Scalar, std::size_t lists, class Rows>
void sum_row_starts(char const* name, memory::Stream<CudaSpace> stream, Index rows, Index width, Rows const& all_rows,
                    bool wide, Accumulate<Scalar>* partial, ColumnTarget<Accumulate<Scalar>> first,
                    ColumnTarget<Accumulate<Scalar>> second = {}, ColumnTarget<Accumulate<Scalar>> third = {}) {
  static_assert(lists >= 1 && lists <= 3, "sum_row_starts has at most three targets");
  constexpr Index size = elements_per_access<Scalar>;
  if (width == 0) return;
  auto const groups = std::bit_ceil(static_cast<std::uint64_t>((width + size - 1) / size));
  auto const lanes = std::min<Index>(warp, static_cast<Index>(groups));
  auto const tiles = (width + lanes * size - 1) / (lanes * size), chunks = column_chunks(rows);
  launch_grid(name, stream, {static_cast<unsigned>(tiles * chunks), static_cast<unsigned>(lists)}, threads_per_block,
              wide ? sum_matrix_chunks<Scalar, true, Rows> : sum_matrix_chunks<Scalar, false, Rows>, rows, width,
              static_cast<int>(lanes), column_chunk(rows), all_rows, chunks > 1 ? partial : nullptr, first, second,
              third);
  finish_columns<Accumulate<Scalar>, lists>(name, stream, chunks, width, partial, first, second, third);
}

/// Sums each column of up to three matrices [rows, width] over all rows, as sum_row_starts does.
/// @shape x [matrices * rows, width]   @shape partial [matrices * column_partials(rows, width)], overwritten
template <class Scalar, std::size_t matrices = 1>
void sum_matrix_columns(char const* name, memory::Stream<CudaSpace> stream, Index rows, Index width, Scalar const* x,
                        Accumulate<Scalar>* partial, ColumnTarget<Accumulate<Scalar>> first,
                        ColumnTarget<Accumulate<Scalar>> second = {}, ColumnTarget<Accumulate<Scalar>> third = {}) {
  bool const wide =
      width % elements_per_access<Scalar> == 0 && reinterpret_cast<std::uintptr_t>(x) % widest_access_bytes == 0;
  sum_row_starts<Scalar, matrices>(name, stream, rows, width, MatrixRows<Scalar>{x, width}, wide, partial, first,
                                   second, third);
}

}}}  // namespace lockstep::kernel::detail
