// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/kernel/detail/gemm_pack.hpp>
#include <lockstep/kernel/detail/gemm_tile.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {

/// C = alpha * A B + beta * C + bias for one thread. C's columns are contiguous.
template <class T>
struct GemmBlock {
  Index m, n, k;
  T alpha;
  Strided<T const> a;  ///< [m, k]
  Strided<T const> b;  ///< [k, n]
  T beta;
  T* c;  ///< [m, n]
  Index c_row;
  T const* bias;  ///< [n], or null
};

/// How much of B is packed at once: with this, it stays in the second-level cache while rows of A stream past it.
inline constexpr Index packed_depth = 256, packed_columns = 128;
/// Rows of A that stay in the first-level cache while all packed columns pass.
inline constexpr Index resident_rows = 48;

/// Rows [i, i + rows) of C's columns [j, j + columns), for the steps [p, p + depth) whose part of B is packed. `ahead`
/// is called once per tile.
template <class T, class Tile, class Ahead>
void multiply_packed(GemmBlock<T> const& block, Index i, Index rows, Index j, Index columns, Index p, Index depth,
                     T const* packed, Ahead&& ahead) {
  for (Index jj = 0; jj < columns; jj += Tile::columns) {
    for (Index ii = i; ii < i + rows; ii += Tile::rows) {
      ahead();
      auto const a = block.a.at(ii, p);
      Tile::multiply({.rows = std::min(Tile::rows, i + rows - ii),
                      .columns = std::min(Tile::columns, columns - jj),
                      .k = depth,
                      .a = a.data,
                      .a_row = a.row,
                      .a_step = a.column,
                      .b = packed + jj * depth,
                      .alpha = block.alpha,
                      .beta = p == 0 ? block.beta : T(1),
                      .bias = p == 0 && block.bias ? block.bias + j + jj : nullptr,
                      .c = block.c + ii * block.c_row + j + jj,
                      .c_row = block.c_row});
    }
  }
}

/// The blocked product with one tile. `done(row, rows, column, columns)` is called for each part of C as it is
/// completed.
template <class T, class Tile, class Done>
void multiply_blocks(GemmBlock<T> const& block, Done& done) {
  alignas(64) T packed[static_cast<std::size_t>(packed_depth * (packed_columns + Tile::columns))];
  auto const tiles = [](Index rows, Index columns) {
    return (rows + Tile::rows - 1) / Tile::rows * ((columns + Tile::columns - 1) / Tile::columns);
  };
  for (Index j = 0; j < block.n; j += packed_columns) {
    Index const columns = std::min(packed_columns, block.n - j);
    for (Index p = 0; p == 0 || p < block.k; p += packed_depth) {
      Index const depth = std::min(packed_depth, block.k - p);
      pack<T, Tile::columns>(block.b.at(p, j), depth, columns, packed);
      for (Index i = 0; i < block.m; i += resident_rows) {
        Index const rows = std::min(resident_rows, block.m - i);
        Prefetch next(block.a.at(i + rows, p), std::min(resident_rows, block.m - i - rows), depth,
                      tiles(rows, columns));
        multiply_packed<T, Tile>(block, i, rows, j, columns, p, depth, packed, next);
        if (p + depth >= block.k) done(i, rows, j, columns);
      }
    }
  }
}

/// The blocked product with the given instructions, which this processor must have. k = 0 leaves beta * C + bias.
template <class T, class Done>
void multiply_block(InstructionSet set, GemmBlock<T> const& block, Done&& done) {
#if LOCKSTEP_HAS_INSTRUCTION_SETS
  if (set == InstructionSet::avx512) return multiply_blocks<T, Avx512Tile<T>>(block, done);
  if (set == InstructionSet::avx2) return multiply_blocks<T, Avx2Tile<T>>(block, done);
#endif
  static_cast<void>(set);
  multiply_blocks<T, BaselineTile<T>>(block, done);
}

/// The widest instructions that a tile exists for: the tiles for avx2 also need fused multiply-adds.
[[nodiscard]] inline InstructionSet gemm_instruction_set() noexcept {
  auto const best = best_instruction_set();
#if LOCKSTEP_HAS_INSTRUCTION_SETS
  if (!__builtin_cpu_supports("fma")) return InstructionSet::baseline;
#endif
  return best;
}

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
