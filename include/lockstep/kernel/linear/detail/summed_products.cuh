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

/// Shape of a block's work: a square of C, of which each of 4 warps owns a quarter. Steps of `depth` columns of A and
/// rows of B pass through shared memory, where `stages` of them are copied or read at a time.
template <int side_>
struct SummedShape {
  static constexpr int side = side_, warp_side = side / 2, threads = 128, depth = 4096 / side, stages = 4;
  static constexpr int access = elements_per_access<bfloat16>;

  template <int n>
  static constexpr auto extent = static_cast<std::size_t>(n);
  /// Rows are 16 bytes longer than a step, so that eight rows of 16 bytes are in different banks.
  struct Stage {
    std::uint16_t a[extent<side>][extent<depth + access>], b[extent<depth>][extent<side + access>];
  };
  /// Sums of 16 rows of a warp. Half of a warp writes pairs of four rows to different banks.
  using Rows = float[16][extent<warp_side + 8>];
  static constexpr int shared_bytes = stages * static_cast<int>(sizeof(Stage));
  static_assert(threads / 32 * static_cast<int>(sizeof(Rows)) <= shared_bytes);
};

inline namespace LOCKSTEP_CUDA_ABI {

/// Computes a block's part of C in one pass over all pairs. n and k are multiples of 8, and addresses of 16 bytes. Each
/// sum has one order, whatever the shape of the block's work, and is rounded once.
template <class Scalar, int side>
LOCKSTEP_CUDA_KERNEL void __launch_bounds__(SummedShape<side>::threads, 2) sum_products(SummedProducts<Scalar> in) {
  using Shape = SummedShape<side>;
  constexpr int depth = Shape::depth, access = Shape::access, columns = Shape::warp_side, tiles_of_rows = columns / 16;
  auto* const stages = dynamic_shared<typename Shape::Stage>();
  auto const m = static_cast<int>(in.m), n = static_cast<int>(in.n), k = static_cast<int>(in.k);
  auto const tiles = (n + side - 1) / side, tile = static_cast<int>(blockIdx.x) % tiles;
  auto const first_row = static_cast<int>(blockIdx.x) / tiles * side, first_column = tile * side;
  auto const steps_of_pair = (k + depth - 1) / depth, steps = static_cast<int>(in.count) * steps_of_pair;
  auto const thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp_number = thread / 32;
  auto const warp_row = warp_number / 2 * Shape::warp_side, warp_column = warp_number % 2 * Shape::warp_side;

  auto const copy = [&](int step) {
    if (step < steps) {
      auto const pair = step / steps_of_pair, at = (step - pair * steps_of_pair) * depth;
      auto const* const a = in.a + pair * in.a_stride + Index{first_row} * k + at;
      auto const* const b = in.b + pair * in.b_stride + Index{at} * n + first_column;
      auto& stage = stages[step % Shape::stages];
      constexpr int a_groups = depth / access, b_groups = side / access;
      LOCKSTEP_UNROLL
      for (int i = thread; i < side * a_groups; i += Shape::threads) {
        auto const number = i / a_groups, c = i % a_groups * access;
        // Eight threads copy one row, or two of 64 bytes, which are in different banks if they are four rows apart.
        auto const row = a_groups == 4 ? (number & ~5) | (number & 1) << 2 | (number >> 2 & 1) : number;
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

  float sums[Shape::template extent<tiles_of_rows>][Shape::template extent<columns / 8>][4] = {};
  for (int step = 0; step < steps; ++step) {
    wait_for_earlier_copies<Shape::stages - 2>();
    __syncthreads();  // this step has arrived, and the last one was read
    copy(step + Shape::stages - 1);
    auto const& stage = stages[step % Shape::stages];
    LOCKSTEP_UNROLL
    for (int at = 0; at < depth; at += 16) {
      ElementPair left[Shape::template extent<tiles_of_rows>][4];
      LOCKSTEP_UNROLL
      for (int r = 0; r < tiles_of_rows; ++r)
        load_matrices<Transposed::no>(left[r], &stage.a[warp_row + 16 * r + lane % 16][at + lane / 16 * 8]);
      LOCKSTEP_UNROLL
      for (int c = 0; c < columns / 16; ++c) {
        ElementPair right[4];
        load_matrices<Transposed::yes>(right, &stage.b[at + lane % 16][warp_column + 16 * c + lane / 16 * 8]);
        LOCKSTEP_UNROLL
        for (int r = 0; r < tiles_of_rows; ++r) {
          multiply_add<Scalar>(sums[r][2 * c], left[r], right[0], right[1]);
          multiply_add<Scalar>(sums[r][2 * c + 1], left[r], right[2], right[3]);
        }
      }
    }
  }

  // Through shared memory, so that threads access 16 bytes of C.
  __syncthreads();  // the last step was read
  auto& mine = reinterpret_cast<typename Shape::Rows*>(stages)[warp_number];
  LOCKSTEP_UNROLL
  for (int r = 0; r < tiles_of_rows; ++r) {
    LOCKSTEP_UNROLL
    for (int c = 0; c < columns / 8; ++c)
      for (int i = 0; i < 4; ++i) mine[i / 2 * 8 + lane / 4][8 * c + lane % 4 * 2 + i % 2] = sums[r][c][i];
    __syncwarp();
    LOCKSTEP_UNROLL
    for (int i = lane; i < 16 * columns / access; i += 32) {
      auto const part_row = i / (columns / access), c = i % (columns / access) * access;
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

/// Computes C, or adds to it, in one kernel, and returns true. Needs compute capability 8.0. n is at most 256; n, k and
/// both strides are multiples of 8, and addresses of 16 bytes. Returns false without any work in other cases.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture
template <class Scalar>
[[nodiscard]] bool try_sum_products(char const* name, memory::Stream<CudaSpace> stream,
                                    SummedProducts<Scalar> const& in) {
  static_assert(sizeof(Scalar) == 2);
  constexpr Index widest = 256;  // three products of cuBLASLt are about as fast for wider ones (predicted)
  constexpr Index access = elements_per_access<Scalar>;
  auto const is_aligned = [](void const* data) { return reinterpret_cast<std::uintptr_t>(data) % 16 == 0; };
  if (in.m == 0 || in.n == 0 || in.k == 0 || in.n > widest) return false;
  if (in.n % access != 0 || in.k % access != 0 || in.a_stride % access != 0 || in.b_stride % access != 0) return false;
  if (!is_aligned(in.a) || !is_aligned(in.b) || !is_aligned(in.c) || !has_tensor_cores()) return false;
  auto const blocks = [&](Index side) { return (in.m + side - 1) / side * ((in.n + side - 1) / side); };
  auto const launch_with = [&]<int side>(std::integral_constant<int, side>) {
    using Shape = SummedShape<side>;
    launch_grid<Shape::shared_bytes>(name, stream, static_cast<unsigned>(blocks(side)), Shape::threads,
                                     sum_products<Scalar, side>, in);
  };
  // Large parts read A and B less often; small ones occupy more multiprocessors.
  constexpr Index enough_blocks = 128;
  if (blocks(128) >= enough_blocks)
    launch_with(std::integral_constant<int, 128>{});
  else
    launch_with(std::integral_constant<int, 64>{});
  stream.queued().add_products(2.0 * static_cast<double>(in.count) * static_cast<double>(in.m) *
                                   static_cast<double>(in.n) * static_cast<double>(in.k),
                               sizeof(Scalar));
  return true;
}

}}}  // namespace lockstep::kernel::detail
