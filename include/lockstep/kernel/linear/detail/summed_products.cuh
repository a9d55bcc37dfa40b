// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/detail/tensor_core.cuh>
#include <lockstep/kernel/detail/vectorized_access.cuh>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// C = the sum of A_i B_i for `count` pairs of row-major matrices, which are stored `a_stride` and `b_stride` elements
/// apart: A_i [m, k], B_i [k, n], C [m, n].
template <class Scalar>
struct SummedProducts {
  Index count;
  Scalar const* a;
  Index a_stride;
  Scalar const* b;
  Index b_stride;
  Scalar* c;
  Write write;
  Index m, n, k;
};

/// Shape of a block's work: a square of C. Each warp owns `row_tiles` times 16 rows and 32 columns. Steps of `depth`
/// columns of A and rows of B pass through shared memory, where `stages` of them are copied or read at a time.
template <int row_tiles_>
struct SummedShape {
  static constexpr int row_tiles = row_tiles_, side = 32 * row_tiles, warp_rows = 16 * row_tiles, warp_columns = 32;
  static constexpr int column_warps = side / warp_columns, threads = 32 * column_warps * side / warp_rows;
  static constexpr int depth = 128 / row_tiles, stages = 4;
  static constexpr int access = elements_per_access<bfloat16>;

  template <int n>
  static constexpr auto extent = static_cast<std::size_t>(n);
  /// Rows are 16 bytes longer than a step, so that eight rows of 16 bytes are in different banks.
  struct Stage {
    std::uint16_t a[extent<side>][extent<depth + access>], b[extent<depth>][extent<side + access>];
  };
  /// Sums of 16 rows of a warp, in a stride that keeps pairs of a quarter of a warp's rows in different banks.
  using Sums = float[16][extent<warp_columns + 8>];
  static constexpr int shared_bytes = stages * static_cast<int>(sizeof(Stage));
  static_assert(threads / 32 * static_cast<int>(sizeof(Sums)) <= shared_bytes);
};

inline namespace LOCKSTEP_CUDA_ABI {

/// Computes a block's part of C in one pass over all pairs. n and k are multiples of 8, and addresses of 16 bytes. Each
/// sum has one order, whatever the shape of the block's work, and is rounded once.
template <class Scalar, int row_tiles>
LOCKSTEP_CUDA_KERNEL void __launch_bounds__(SummedShape<row_tiles>::threads, 2)
    sum_products(SummedProducts<Scalar> in) {
  using Shape = SummedShape<row_tiles>;
  constexpr int depth = Shape::depth, side = Shape::side, access = Shape::access;
  auto* const stages = dynamic_shared<typename Shape::Stage>();
  auto const m = static_cast<int>(in.m), n = static_cast<int>(in.n), k = static_cast<int>(in.k);
  auto const tiles = (n + side - 1) / side, tile = static_cast<int>(blockIdx.x) % tiles;
  auto const first_row = static_cast<int>(blockIdx.x) / tiles * side, first_column = tile * side;
  auto const steps_of_pair = (k + depth - 1) / depth, steps = static_cast<int>(in.count) * steps_of_pair;
  auto const thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp_number = thread / 32;
  auto const warp_row = warp_number / Shape::column_warps * Shape::warp_rows,
             warp_column = warp_number % Shape::column_warps * Shape::warp_columns;

  auto const copy = [&](int step) {
    if (step < steps) {
      auto const pair = step / steps_of_pair, at = (step - pair * steps_of_pair) * depth;
      auto const* const a = in.a + pair * in.a_stride + Index{first_row} * k + at;
      auto const* const b = in.b + pair * in.b_stride + Index{at} * n + first_column;
      auto& stage = stages[step % Shape::stages];
      constexpr int a_groups = depth / access, b_groups = side / access;
      LOCKSTEP_UNROLL
      for (int i = thread; i < side * a_groups; i += Shape::threads) {
        auto const row = i / a_groups, c = i % a_groups * access;
        copy_async<16>(&stage.a[row][c], a + Index{row} * k + c, first_row + row < m && at + c < k);
      }
      LOCKSTEP_UNROLL
      for (int i = thread; i < depth * b_groups; i += Shape::threads) {
        auto const row = i / b_groups, c = i % b_groups * access;
        copy_async<16>(&stage.b[row][c], b + Index{row} * n + c, at + row < k && first_column + c < n);
      }
    }
    end_copies();
  };
  for (int step = 0; step < Shape::stages - 1; ++step) copy(step);

  float sums[static_cast<std::size_t>(row_tiles)][4][4] = {};
  for (int step = 0; step < steps; ++step) {
    wait_for_earlier_copies<Shape::stages - 2>();
    __syncthreads();  // this step has arrived, and the last one was read
    copy(step + Shape::stages - 1);
    auto const& stage = stages[step % Shape::stages];
    LOCKSTEP_UNROLL
    for (int at = 0; at < depth; at += 16) {
      ElementPair left[static_cast<std::size_t>(row_tiles)][4];
      LOCKSTEP_UNROLL
      for (int r = 0; r < row_tiles; ++r)
        load_matrices<Transposed::no>(left[r], &stage.a[warp_row + 16 * r + lane % 16][at + lane / 16 * 8]);
      LOCKSTEP_UNROLL
      for (int c = 0; c < 2; ++c) {
        ElementPair right[4];
        load_matrices<Transposed::yes>(right, &stage.b[at + lane % 16][warp_column + 16 * c + lane / 16 * 8]);
        LOCKSTEP_UNROLL
        for (int r = 0; r < row_tiles; ++r) {
          multiply_add<Scalar>(sums[r][2 * c], left[r], right[0], right[1]);
          multiply_add<Scalar>(sums[r][2 * c + 1], left[r], right[2], right[3]);
        }
      }
    }
  }

  // Through shared memory, so that threads access 16 bytes of C.
  __syncthreads();  // the last step was read
  auto& mine = reinterpret_cast<typename Shape::Sums*>(stages)[warp_number];
  LOCKSTEP_UNROLL
  for (int r = 0; r < row_tiles; ++r) {
    LOCKSTEP_UNROLL
    for (int c = 0; c < 4; ++c)
      for (int i = 0; i < 4; ++i) mine[i / 2 * 8 + lane / 4][8 * c + lane % 4 * 2 + i % 2] = sums[r][c][i];
    __syncwarp();
    LOCKSTEP_UNROLL
    for (int i = lane; i < 16 * Shape::warp_columns / access; i += 32) {
      auto const part_row = i / (Shape::warp_columns / access), c = i % (Shape::warp_columns / access) * access;
      auto const row = first_row + warp_row + 16 * r + part_row, column = first_column + warp_column + c;
      if (row >= m || column >= n) continue;
      VectorizedAccess<access> const to(Index{row} * n + column, in.m * in.n);
      float values[static_cast<std::size_t>(access)];
      for (int j = 0; j < access; ++j) values[j] = mine[part_row][c + j];
      if (in.write == Write::add) {
        Scalar before[static_cast<std::size_t>(access)];
        to.load_whole(in.c, before);
        for (int j = 0; j < access; ++j) values[j] += static_cast<float>(before[j]);
      }
      to.put_whole(values, in.c);
    }
    __syncwarp();
  }
}

}  // namespace LOCKSTEP_CUDA_ABI

/// Computes C, or adds to it, in one kernel, and returns true. Returns false without any work for shapes that
/// cuBLASLt's separate products compute as fast or faster, if n or k is no multiple of 8 or an address none of 16
/// bytes, and on GPUs without the instructions.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture
template <class Scalar>
[[nodiscard]] bool try_sum_products(char const* name, memory::Stream<CudaSpace> stream,
                                    SummedProducts<Scalar> const& in) {
  static_assert(sizeof(Scalar) == 2);
  constexpr Index widest = 256;  // wider products read A more often
  constexpr Index access = elements_per_access<Scalar>;
  auto const is_aligned = [](void const* data) { return reinterpret_cast<std::uintptr_t>(data) % 16 == 0; };
  if (in.m == 0 || in.n == 0 || in.k == 0 || in.n > widest) return false;
  if (in.n % access != 0 || in.k % access != 0 || in.a_stride % access != 0 || in.b_stride % access != 0) return false;
  if (!is_aligned(in.a) || !is_aligned(in.b) || !is_aligned(in.c) || !has_tensor_cores()) return false;
  auto const blocks = [&](Index side) { return (in.m + side - 1) / side * ((in.n + side - 1) / side); };
  auto const launch_with = [&]<int row_tiles>(std::integral_constant<int, row_tiles>) {
    using Shape = SummedShape<row_tiles>;
    launch_grid<Shape::shared_bytes>(name, stream, static_cast<unsigned>(blocks(Shape::side)), Shape::threads,
                                     sum_products<Scalar, row_tiles>, in);
  };
  // Large parts read A and B less often; small ones occupy more multiprocessors.
  constexpr Index enough_blocks = 128;
  if (blocks(SummedShape<4>::side) >= enough_blocks)
    launch_with(std::integral_constant<int, 4>{});
  else
    launch_with(std::integral_constant<int, 2>{});
  stream.queued().add_products(2.0 * static_cast<double>(in.count) * static_cast<double>(in.m) *
                                   static_cast<double>(in.n) * static_cast<double>(in.k),
                               sizeof(Scalar));
  return true;
}

}}}  // namespace lockstep::kernel::detail
