// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/detail/sum_columns.cuh>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Extents of a product C = A^T B with few elements and long sums: A is [k, m], B is [k, n]. A GEMM would occupy one
/// multiprocessor per tile of C. Here, blocks also share the rows of A and B, and their partial sums are added in
/// order.
struct LongProduct {
  static constexpr Index tile_m = 32, tile_n = 64, slice = 16;  ///< of one block, and of one step of it
  static constexpr Index wanted_blocks = 1024, min_chunk = 64;

  Index m, n, k;
  Index chunk;  ///< rows of A and B that one block multiplies

  LongProduct(Index m_extent, Index n_extent, Index k_extent) noexcept : m(m_extent), n(n_extent), k(k_extent) {
    chunk = std::max(min_chunk, (k * tiles() / wanted_blocks + slice - 1) / slice * slice);
  }
  /// Returns the product of the first rows of A and B, which needs no more memory.
  [[nodiscard]] LongProduct first(Index rows) const noexcept {
    auto part = *this;
    part.k = rows;
    return part;
  }
  /// Returns whether `multiply_long` applies and is faster than a GEMM, as estimated from peak rates and not yet
  /// measured. Tensor cores compute a tile's 16-bit products about ten times as fast.
  template <class Scalar>
  [[nodiscard]] bool is_long() const noexcept {
    auto const gemm_blocks = (m + 63) / 64 * ((n + 63) / 64);
    return k >= 512 && chunks() > 1 && gemm_blocks <= (sizeof(Scalar) == 2 ? 4 : 48);
  }
  [[nodiscard]] Index tiles() const noexcept { return (m + tile_m - 1) / tile_m * ((n + tile_n - 1) / tile_n); }
  [[nodiscard]] Index chunks() const noexcept { return (k + chunk - 1) / chunk; }
  /// Returns the number of elements for partial sums.
  [[nodiscard]] Index partial_elements() const noexcept { return chunks() * m * n; }
};

inline namespace LOCKSTEP_CUDA_ABI {

/// Computes one tile of a chunk's partial sums. A thread computes 2 x 4 elements. The block copies 16 rows of both
/// factors to shared memory at a time, and reads the next 16 from device memory meanwhile.
template <class Scalar>
LOCKSTEP_CUDA_KERNEL void __launch_bounds__(threads_per_block)
    multiply_chunks(LongProduct p, Scalar const* a, Scalar const* b, Accumulate<Scalar>* partial) {
  using Sum = Accumulate<Scalar>;
  constexpr Index tile_m = LongProduct::tile_m, tile_n = LongProduct::tile_n, slice = LongProduct::slice;
  constexpr Index a_rows = threads_per_block / tile_m, b_rows = threads_per_block / tile_n;  // copied at once
  constexpr Index a_each = slice / a_rows, b_each = slice / b_rows, own_m = 2, own_n = 4;
  __shared__ Sum a_slice[slice][tile_m];
  __shared__ Sum b_slice[slice][tile_n];

  auto const thread = Index{threadIdx.x}, across = (p.n + tile_n - 1) / tile_n;
  auto const first_m = Index{blockIdx.x} / across * tile_m, first_n = Index{blockIdx.x} % across * tile_n;
  auto const begin = Index{blockIdx.y} * p.chunk, end = min(p.k, begin + p.chunk);
  auto const a_column = thread % tile_m, a_row = thread / tile_m, b_column = thread % tile_n, b_row = thread / tile_n;
  bool const reads_a = first_m + a_column < p.m, reads_b = first_n + b_column < p.n;
  auto const* from_a = a + (begin + a_row) * p.m + first_m + a_column;
  auto const* from_b = b + (begin + b_row) * p.n + first_n + b_column;
  Sum next_a[a_each], next_b[b_each];
  auto const read = [&](Index row) {  // zeros beyond the matrices
    for (Index i = 0; i < a_each; ++i)
      next_a[i] = reads_a && row + a_row + i * a_rows < end ? static_cast<Sum>(from_a[i * a_rows * p.m]) : Sum{0};
    for (Index i = 0; i < b_each; ++i)
      next_b[i] = reads_b && row + b_row + i * b_rows < end ? static_cast<Sum>(from_b[i * b_rows * p.n]) : Sum{0};
    from_a += slice * p.m;
    from_b += slice * p.n;
  };

  auto const tile_row = thread / (tile_n / own_n) * own_m, tile_column = thread % (tile_n / own_n) * own_n;
  Sum sums[own_m][own_n] = {};
  read(begin);
  for (auto row = begin; row < end; row += slice) {
    for (Index i = 0; i < a_each; ++i) a_slice[a_row + i * a_rows][a_column] = next_a[i];
    for (Index i = 0; i < b_each; ++i) b_slice[b_row + i * b_rows][b_column] = next_b[i];
    __syncthreads();
    if (row + slice < end) read(row + slice);
    for (Index k = 0; k < slice; ++k)
      for (Index i = 0; i < own_m; ++i)
        for (Index j = 0; j < own_n; ++j) sums[i][j] += a_slice[k][tile_row + i] * b_slice[k][tile_column + j];
    __syncthreads();
  }

  auto* const to = partial + Index{blockIdx.y} * p.m * p.n;
  for (Index i = 0; i < own_m; ++i)
    for (Index j = 0; j < own_n; ++j)
      if (first_m + tile_row + i < p.m && first_n + tile_column + j < p.n)
        to[(first_m + tile_row + i) * p.n + first_n + tile_column + j] = sums[i][j];
}

}  // namespace LOCKSTEP_CUDA_ABI

/// Computes c = a^T b, or adds it to c, for a product with at least two chunks.
/// @shape a [k, m]   @shape b [k, n]   @shape c [m, n]   @shape partial [p.partial_elements()], overwritten
/// @determinism bitwise: only the shape determines the chunks, which are summed in order
template <class Scalar>
void multiply_long(char const* name, memory::Stream<CudaSpace> stream, LongProduct const& p, Scalar const* a,
                   Scalar const* b, Accumulate<Scalar>* c, Write write, Accumulate<Scalar>* partial) {
  launch_grid(name, stream, {static_cast<unsigned>(p.tiles()), static_cast<unsigned>(p.chunks())}, threads_per_block,
              multiply_chunks<Scalar>, p, a, b, partial);
  finish_columns<Accumulate<Scalar>, 1>(name, stream, p.chunks(), p.m * p.n, partial, {c, write}, {});
}

}}}  // namespace lockstep::kernel::detail
