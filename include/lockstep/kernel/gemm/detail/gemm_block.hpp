// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <type_traits>

#include <lockstep/core/index.hpp>
#include <lockstep/kernel/gemm/detail/gemm_pack.hpp>
#include <lockstep/kernel/gemm/detail/gemm_tile.hpp>
#include <lockstep/memory/stream.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

struct RoundedProducts;

/// Callback for each completed part of a matrix product: `f(row, rows, column, columns)` with its position in C, or
/// none. Refers to f. Type-erased because products call it rarely, and would otherwise be compiled again for each f.
class GemmEpilogue {
 public:
  constexpr GemmEpilogue() noexcept = default;
  template <class Function>
  requires(!std::is_same_v<Function, GemmEpilogue>) GemmEpilogue(Function const& f)
  noexcept
      : f_(&f), call_([](void const* any, Index row, Index rows, Index column, Index columns) {
          (*static_cast<Function const*>(any))(row, rows, column, columns);
        }) {}

  void operator()(Index row, Index rows, Index column, Index columns) const {
    if (call_) call_(f_, row, rows, column, columns);
  }

 private:
  void const* f_ = nullptr;
  void (*call_)(void const*, Index, Index, Index, Index) = nullptr;
};

/// C = alpha * A B + beta * C + bias for one thread. C's columns are contiguous.
template <class Scalar>
struct GemmBlock {
  Index m, n, k;
  Scalar alpha;
  Strided<Scalar const> a;  ///< [m, k]
  Strided<Scalar const> b;  ///< [k, n]
  Scalar beta;
  Scalar* c;  ///< [m, n]
  Index c_row;
  Scalar const* bias;                        ///< [n], or null
  Prefetch* prefetch = nullptr;              ///< prefetch of the data that is read after this product
  RoundedProducts const* rounded = nullptr;  ///< how, if a and b may be rounded
};

/// Matrix products of floats whose factors may be rounded, for processors with instructions for it.
struct RoundedProducts : memory::MatrixProductSetting {
  using Multiply = bool(InstructionSet set, GemmBlock<float> const& block, GemmEpilogue epilogue);

  constexpr explicit RoundedProducts(Multiply* function) noexcept : multiply(function) {}
  /// Returns the setting of a host stream, or null.
  [[nodiscard]] static RoundedProducts const* of(memory::Stream<HostSpace> stream) noexcept {
    return static_cast<RoundedProducts const*>(stream.matrix_products());  // no other type derives from the base
  }

  Multiply* multiply;  ///< returns false if the processor does not support it
};

/// Size of the part of B that is packed at once. It stays in the second-level cache while rows of A stream past it.
inline constexpr Index packed_bytes = 256 * 1024;

/// Steps of k that one pass takes; C accumulates the results of several passes. If A's steps are its columns, each step
/// takes at least one line of the first-level cache, so fewer fit.
inline constexpr Index row_steps = 512, column_steps = 256;

/// Whether a tile's columns take one cache line. Such a tile reads each row of A often, a few columns at a time. It has
/// little work to hide the latency of a step, so both operands should be in a near cache.
template <class Scalar, class Tile>
inline constexpr bool takes_one_line = Tile::columns * sizeof(Scalar) <= 64;

/// Whether a tile takes factors as pairs of steps, for which both operands are packed. Other tiles take factors as
/// stored.
template <class Scalar, class Tile>
inline constexpr bool takes_pairs = !std::is_same_v<typename Tile::Factor, Scalar>;

/// Whether a tile takes several steps of a row at once, which must then be contiguous.
template <class Tile>
inline constexpr bool takes_steps_at_once = requires {
  Tile::steps_at_once;
};

/// Returns the number of tile steps for a depth of k.
template <class Scalar, class Tile>
[[nodiscard]] constexpr Index steps_of(Index depth) noexcept {
  if constexpr (takes_steps_at_once<Tile>)
    return Tile::steps(depth);
  else
    return takes_pairs<Scalar, Tile> ? (depth + 1) / 2 : depth;
}

/// Whether B is read in place. If few rows of A use B, packing costs more than nearer reads save. The exception is a B
/// whose rows are so far apart that they map to few cache sets.
template <class Scalar, class Tile>
[[nodiscard]] constexpr bool reads_in_place(GemmBlock<Scalar> const& block) noexcept {
  constexpr Index few = takes_one_line<Scalar, Tile> ? 32 : 512;
  return !takes_pairs<Scalar, Tile> && block.b.column == 1 && block.n % Tile::columns == 0 &&
         block.b.row * Index{sizeof(Scalar)} <= 1024 && block.m <= few;
}

/// Whether rows of A are copied. Tiles of pairs always copy them. Other tiles copy rows only if A is stored by columns
/// and B has enough columns to pay for the copy. Tiles of one cache line then always copy, in A's order. Wider tiles
/// copy if steps are so far apart that they map to few cache sets, each on a page of its own. In that case the next
/// rows are prefetched while these are used.
template <class Scalar, class Tile>
[[nodiscard]] constexpr bool copies_rows(GemmBlock<Scalar> const& block) noexcept {
  if (takes_pairs<Scalar, Tile>) return true;
  if (block.a.row != 1 || block.a.column == 1) return false;
  return takes_one_line<Scalar, Tile> ? block.n >= 4 * Tile::columns
                                      : block.n >= 128 && block.a.column * Index{sizeof(Scalar)} > 2048;
}

/// One pass over some columns of B, as they are packed.
template <class Factor>
struct GemmPass {
  Index p, steps;           ///< where in k it begins, and its number of steps
  Index j, columns;         ///< its columns
  Factor const* packed;     ///< null if B is read in place
  Strided<Factor const> a;  ///< its steps of A from row `first`: in place or copied
  Index first;
  Prefetch* prefetch;  ///< prefetch of the data that is read next, or null
};

/// Computes C's rows [i, i + rows) and columns [jj, jj + columns) of the pass, at most one tile.
template <class Scalar, class Tile>
void multiply_one(GemmBlock<Scalar> const& block, GemmPass<typename Tile::Factor> const& pass, Index i, Index rows,
                  Index jj, Index columns) {
  auto const a = pass.a.at(i - pass.first, 0);
  auto const j = pass.j + jj;
  auto const* b = pass.packed ? pass.packed + jj * pass.steps : nullptr;
  if constexpr (!takes_pairs<Scalar, Tile>)
    if (!b) b = block.b.at(pass.p, j).data;
  if (pass.prefetch) pass.prefetch->advance();
  Tile::multiply({.rows = rows,
                  .columns = columns,
                  .k = pass.steps,
                  .a = a.data,
                  .a_row = a.row,
                  .a_step = a.column,
                  .b = b,
                  .b_step = pass.packed ? Tile::columns : block.b.row,
                  .alpha = block.alpha,
                  .beta = pass.p == 0 ? block.beta : Scalar(1),
                  .bias = pass.p == 0 && block.bias ? block.bias + j : nullptr,
                  .c = block.c + i * block.c_row + j,
                  .c_row = block.c_row,
                  .prefetch = pass.prefetch});
}

/// Returns how many of `columns` go into panels of the wide tile. The others fit the narrow tile.
template <class Tile>
[[nodiscard]] constexpr Index wide_columns(Index columns) noexcept {
  auto const rest = columns % Tile::columns;
  return rest > Tile::Narrow::columns ? columns : columns - rest;
}

/// Computes C's rows [i, i + rows), at most one tile's, and columns [0, wide) of the pass.
template <class Scalar, class Tile>
void multiply_rows(GemmBlock<Scalar> const& block, GemmPass<typename Tile::Factor> pass, Index i, Index rows,
                   Index wide) {
  constexpr auto room = takes_one_line<Scalar, Tile> ? Tile::rows * column_steps : Index{1};
  alignas(64) Scalar copy[static_cast<std::size_t>(room)];
  if constexpr (takes_one_line<Scalar, Tile>) {
    if (copies_rows<Scalar, Tile>(block)) {
      Tile::pack_rows(block.a.at(i, pass.p), pass.steps, rows, copy);
      pass.a = {copy, 1, Tile::rows};
      pass.first = i;
    }
  }
  for (Index jj = 0; jj < wide; jj += Tile::columns)
    multiply_one<Scalar, Tile>(block, pass, i, rows, jj, std::min(Tile::columns, wide - jj));
}

/// Computes all columns of the pass for C's rows [begin, end).
template <class Scalar, class Tile>
void multiply_pass(GemmBlock<Scalar> const& block, GemmPass<typename Tile::Factor> const& pass, Index begin,
                   Index end) {
  using Narrow = typename Tile::Narrow;
  using Low = typename Tile::Low;
  auto const wide = wide_columns<Tile>(pass.columns);
  // If the rows are not a multiple of the tile's, some tiles with one row less are better than one mostly empty tile.
  auto low = (Tile::rows - (end - begin) % Tile::rows) % Tile::rows;
  if (Low::rows == Tile::rows || low * Low::rows > end - begin) low = 0;
  for (Index i = begin, rows; i < end; i += rows, --low) {
    rows = std::min(low > 0 ? Low::rows : Tile::rows, end - i);
    if (low > 0) {
      multiply_rows<Scalar, Low>(block, pass, i, rows, wide);
    } else {
      multiply_rows<Scalar, Tile>(block, pass, i, rows, wide);
    }
  }
  if (wide == pass.columns) return;
  for (Index i = begin; i < end; i += Narrow::rows)
    multiply_one<Scalar, Narrow>(block, pass, i, std::min(Narrow::rows, end - i), wide, pass.columns - wide);
}

/// Blocked matrix product with one tile. Calls `epilogue(row, rows, column, columns)` for each part of C when it is
/// complete.
template <class Scalar, class Tile>
void multiply_blocks(GemmBlock<Scalar> const& block, GemmEpilogue epilogue) {
  using Factor = typename Tile::Factor;
  constexpr Index capacity = packed_bytes / Index{sizeof(Factor)};
  alignas(64) Factor packed[static_cast<std::size_t>(capacity)];
  bool const in_rows = block.a.column == 1 || takes_steps_at_once<Tile>;
  auto const max_depth = std::max<Index>(1, std::min(block.k, in_rows ? row_steps : column_steps));
  auto const max_steps = steps_of<Scalar, Tile>(max_depth);
  auto const columns_together = std::max(Tile::columns, capacity / max_steps / Tile::columns * Tile::columns);
  bool const in_place = reads_in_place<Scalar, Tile>(block);
  bool const copied = !takes_one_line<Scalar, Tile> && copies_rows<Scalar, Tile>(block);
  constexpr Index max_copied = takes_one_line<Scalar, Tile> ? 1 : row_block * column_steps;
  static_assert(!takes_pairs<Scalar, Tile> || steps_of<Scalar, Tile>(row_steps) <= column_steps);
  alignas(64) Factor copy[static_cast<std::size_t>(max_copied)];
  for (Index j = 0; j < block.n; j += columns_together) {
    for (Index p = 0; p == 0 || p < block.k; p += max_depth) {
      Index const depth = std::min(max_depth, block.k - p), steps = steps_of<Scalar, Tile>(depth);
      GemmPass<Factor> pass{.p = p,
                            .steps = steps,
                            .j = j,
                            .columns = std::min(columns_together, block.n - j),
                            .packed = in_place ? nullptr : packed,
                            .a = {nullptr, 0, 0},
                            .first = 0,
                            .prefetch = block.prefetch};
      if constexpr (!takes_pairs<Scalar, Tile>) pass.a = block.a.at(0, p);
      auto const wide = wide_columns<Tile>(pass.columns);
      if (!in_place) {
        Tile::pack(block.b.at(p, j), depth, wide, packed);
        Tile::Narrow::pack(block.b.at(p, j + wide), depth, pass.columns - wide, packed + wide * steps);
      }
      for (Index i = 0; i < block.m; i += row_block) {
        Index const rows = std::min(row_block, block.m - i);
        Prefetch next;
        if (copied) {
          Tile::pack_rows(block.a.at(i, p), depth, rows, copy);
          bool const last = i + rows == block.m;
          pass.a = {copy, in_rows ? steps : 1, in_rows ? 1 : row_block};
          pass.first = i;
          if (block.a.column != 1) {
            next = Prefetch::of_rows(block.a.at(last ? 0 : i + rows, last ? p + max_depth : p).data,
                                     last ? std::min(max_depth, block.k - p - depth) : depth, block.a.column);
            pass.prefetch = last && p + max_depth >= block.k ? block.prefetch : &next;
          }
        }
        multiply_pass<Scalar, Tile>(block, pass, i, i + rows);
        if (p + max_depth >= block.k) epilogue(i, rows, j, pass.columns);
      }
    }
  }
}

/// Blocked matrix product with the given instructions, which this processor must have, or with the bfloat16
/// instructions if its factors may be rounded. For k = 0, computes beta * C + bias.
template <class Scalar>
void multiply_block(InstructionSet set, GemmBlock<Scalar> const& block, GemmEpilogue epilogue) {
  if constexpr (std::is_same_v<Scalar, float>)
    if (block.rounded && block.rounded->multiply(set, block, epilogue)) return;
  with_compiled_set(set, [&](auto compiled) {
    using Tile = TileOf<Scalar, compiled()>;
    if (block.m <= few_rows && block.a.column == 1 && block.b.row == 1 && block.alpha == 1 && block.beta == 0) {
      Tile::multiply_few_rows(block.a, block.m, block.b, block.n, block.k, row_steps, block.bias, block.c, block.c_row);
      epilogue(0, block.m, 0, block.n);
    } else {
      multiply_blocks<Scalar, Tile>(block, epilogue);
    }
  });
}

/// Returns the widest instructions that a tile exists for. The tiles for avx2 also need fused multiply-adds.
[[nodiscard]] inline InstructionSet gemm_instruction_set() noexcept {
#if LOCKSTEP_HAS_INSTRUCTION_SETS
  if constexpr (min_instruction_set == InstructionSet::baseline)
    if (!__builtin_cpu_supports("fma")) return InstructionSet::baseline;
#endif
  return best_instruction_set();
}

}}}  // namespace lockstep::kernel::detail
