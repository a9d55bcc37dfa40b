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
  T const* bias;           ///< [n], or null
  Ahead* ahead = nullptr;  ///< what is read after this product
};

/// How much of B is packed at once: with this, it stays in the second-level cache while rows of A stream past it.
inline constexpr Index packed_bytes = 256 * 1024;

/// How many steps of k one pass takes that reads rows or columns of A `stride` elements apart; what several passes give
/// is summed in C. Where steps lie a multiple of 2048 or 4096 bytes apart they fall into few sets of the first-level
/// cache, so that fewer fit.
[[nodiscard]] constexpr Index pass_depth(Index stride) noexcept { return stride % 512 == 0 ? 256 : 512; }

/// Whether B is read where it lies: where few rows of A meet it, packing it costs more than nearer reads return, unless
/// its own rows are so far apart that they fall into few sets of the caches.
template <class T, class Tile>
[[nodiscard]] constexpr bool reads_in_place(GemmBlock<T> const& block) noexcept {
  return block.b.column == 1 && block.n % Tile::columns == 0 && block.b.row * Index{sizeof(T)} <= 1024 &&
         block.m <= pass_depth(1);
}

/// Whether rows of A are copied before panels of B meet them: where their steps lie so far apart that they fall into
/// few sets of the caches, each on a page of its own, and enough columns make up for it. The next rows are asked for
/// while these are used.
template <class T>
[[nodiscard]] constexpr bool copies_rows(GemmBlock<T> const& block) noexcept {
  return block.a.row == 1 && block.a.column * Index{sizeof(T)} > 2048 && block.n >= 128;
}

/// One pass over some columns of B, as they are packed.
template <class T>
struct GemmPass {
  Index p, depth;    ///< its steps
  Index j, columns;  ///< its columns
  T const* packed;   ///< null where they are read where they lie
  T const* rows;     ///< of A, up to rows_together; null where they are read where they lie
  Ahead* ahead;      ///< what is read next, or null
};

/// C's rows [i, i + rows) and columns [jj, jj + columns) of the pass, at most a tile's.
template <class T, class Tile>
void multiply_one(GemmBlock<T> const& block, GemmPass<T> const& pass, Index i, Index rows, Index jj, Index columns) {
  auto const a = pass.rows ? Strided<T const>{pass.rows + i % rows_together, 1, rows_together} : block.a.at(i, pass.p);
  auto const j = pass.j + jj;
  if (pass.ahead) pass.ahead->advance();
  Tile::multiply({.rows = rows,
                  .columns = columns,
                  .k = pass.depth,
                  .a = a.data,
                  .a_row = a.row,
                  .a_step = a.column,
                  .b = pass.packed ? pass.packed + jj * pass.depth : block.b.at(pass.p, j).data,
                  .b_step = pass.packed ? Tile::columns : block.b.row,
                  .alpha = block.alpha,
                  .beta = pass.p == 0 ? block.beta : T(1),
                  .bias = pass.p == 0 && block.bias ? block.bias + j : nullptr,
                  .c = block.c + i * block.c_row + j,
                  .c_row = block.c_row,
                  .ahead = pass.ahead});
}

/// How many of `columns` go into panels of the wide tile; the others fit the narrow one.
template <class Tile>
[[nodiscard]] constexpr Index wide_columns(Index columns) noexcept {
  auto const rest = columns % Tile::columns;
  return rest > Tile::Narrow::columns ? columns : columns - rest;
}

/// All columns of the pass for C's rows [begin, end).
template <class T, class Tile>
void multiply_pass(GemmBlock<T> const& block, GemmPass<T> const& pass, Index begin, Index end) {
  using Narrow = typename Tile::Narrow;
  using Low = typename Tile::Low;
  auto const wide = wide_columns<Tile>(pass.columns);
  // Where rows are no multiple of the tile's, some tiles of one row less are better than one that is mostly empty.
  auto low = (Tile::rows - (end - begin) % Tile::rows) % Tile::rows;
  if (Low::rows == Tile::rows || low * Low::rows > end - begin) low = 0;
  for (Index i = begin, rows; i < end; i += rows, --low) {
    rows = std::min(low > 0 ? Low::rows : Tile::rows, end - i);
    for (Index jj = 0; jj < wide; jj += Tile::columns) {
      auto const columns = std::min(Tile::columns, wide - jj);
      if (low > 0) {
        multiply_one<T, Low>(block, pass, i, rows, jj, columns);
      } else {
        multiply_one<T, Tile>(block, pass, i, rows, jj, columns);
      }
    }
  }
  if (wide == pass.columns) return;
  for (Index i = begin; i < end; i += Narrow::rows)
    multiply_one<T, Narrow>(block, pass, i, std::min(Narrow::rows, end - i), wide, pass.columns - wide);
}

/// The blocked product with one tile. `done(row, rows, column, columns)` is called for each part of C as it is
/// completed.
template <class T, class Tile, class Done>
void multiply_blocks(GemmBlock<T> const& block, Done& done) {
  constexpr Index capacity = packed_bytes / Index{sizeof(T)};
  alignas(64) T packed[static_cast<std::size_t>(capacity)];
  auto const most = std::max<Index>(1, std::min(block.k, pass_depth(block.a.column)));
  auto const columns_together = std::max(Tile::columns, capacity / most / Tile::columns * Tile::columns);
  bool const in_place = reads_in_place<T, Tile>(block), copied = copies_rows(block);
  constexpr Index most_copied = rows_together * pass_depth(1);
  alignas(64) T copy[static_cast<std::size_t>(most_copied)];
  for (Index j = 0; j < block.n; j += columns_together) {
    for (Index p = 0; p == 0 || p < block.k; p += most) {
      GemmPass<T> pass{.p = p,
                       .depth = std::min(most, block.k - p),
                       .j = j,
                       .columns = std::min(columns_together, block.n - j),
                       .packed = in_place ? nullptr : packed,
                       .rows = copied ? copy : nullptr,
                       .ahead = block.ahead};
      auto const wide = wide_columns<Tile>(pass.columns);
      if (!in_place) {
        Tile::pack(block.b.at(p, j), pass.depth, wide, packed);
        Tile::Narrow::pack(block.b.at(p, j + wide), pass.depth, pass.columns - wide, packed + wide * pass.depth);
      }
      for (Index i = 0; i < block.m; i += rows_together) {
        Index const rows = std::min(rows_together, block.m - i);
        Ahead next;
        if (copied) {
          Tile::pack_rows(block.a.at(i, p), pass.depth, rows, copy);
          bool const last = i + rows == block.m;
          next = Ahead::of_rows(block.a.at(last ? 0 : i + rows, last ? p + most : p).data,
                                last ? std::min(most, block.k - p - pass.depth) : pass.depth, block.a.column);
          pass.ahead = last && p + most >= block.k ? block.ahead : &next;
        }
        multiply_pass<T, Tile>(block, pass, i, i + rows);
        if (p + most >= block.k) done(i, rows, j, pass.columns);
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
