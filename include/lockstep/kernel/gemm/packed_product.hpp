// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/gemm/detail/gemm_block.hpp>
#include <lockstep/kernel/gemm/detail/gemm_pack.hpp>
#include <lockstep/kernel/gemm/detail/gemm_tile.hpp>
#include <lockstep/kernel/gemm/detail/strided.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Products of small matrices with an operand that is packed once and used many times, with one of the tiles.
template <class Scalar, class Tile>
struct PackedProduct {
  /// Returns the number of columns when packed: a multiple of the tile's columns.
  [[nodiscard]] static constexpr Index columns(Index count) noexcept {
    return (count + Tile::columns - 1) / Tile::columns * Tile::columns;
  }
  /// Packs B [depth, count] for `multiply`; writes depth * columns(count) elements.
  static void pack(Strided<Scalar const> b, Index depth, Index count, Scalar* packed) {
    Tile::pack(b, depth, count, packed);
  }
  /// Computes C [m, n] = alpha A B + beta C, where A is [m, k]. B is the first k rows and n columns of a matrix that
  /// was packed with `depth` rows. Columns of C after B's last are zero.
  static void multiply(Index m, Index n, Index k, Scalar alpha, Strided<Scalar const> a, Scalar const* packed,
                       Index depth, Scalar beta, Scalar* c, Index c_row) {
    for (Index j = 0; j < n; j += Tile::columns)
      for (Index i = 0; i < m; i += Tile::rows)
        Tile::multiply({.rows = std::min(Tile::rows, m - i),
                        .columns = std::min(Tile::columns, n - j),
                        .k = k,
                        .a = a.data + i * a.row,
                        .a_row = a.row,
                        .a_step = a.column,
                        .b = packed + j * depth,
                        .b_step = Tile::columns,
                        .alpha = alpha,
                        .beta = beta,
                        .bias = nullptr,
                        .c = c + i * c_row + j,
                        .c_row = c_row,
                        .prefetch = nullptr});
  }
  /// Computes C [n] = alpha A B for one row A of k steps. B's panels begin `b_column` elements apart per column, and
  /// their steps are `b_step` apart. Columns of the last panel are read, also if C does not have them.
  static void multiply_row(Index n, Index k, Scalar alpha, Scalar const* a, Scalar const* b, Index b_column,
                           Index b_step, Scalar* c) {
    static_assert(Tile::rows == 1);
    for (Index j = 0; j < n; j += Tile::columns)
      Tile::multiply({.rows = 1,
                      .columns = std::min(Tile::columns, n - j),
                      .k = k,
                      .a = a,
                      .a_row = 0,
                      .a_step = 1,
                      .b = b + j * b_column,
                      .b_step = b_step,
                      .alpha = alpha,
                      .beta = 0,
                      .bias = nullptr,
                      .c = c + j,
                      .c_row = n,
                      .prefetch = nullptr});
  }
};

/// Calls f(PackedProduct) with the best tile for one row on this processor.
template <class Scalar, class Function>
decltype(auto) with_row_product(Function&& f) {
  return with_compiled_set(gemm_instruction_set(), [&f](auto compiled) -> decltype(auto) {
    return f(PackedProduct<Scalar, typename TileOf<Scalar, compiled()>::Single>{});
  });
}

/// Calls f(PackedProduct) with the best tile for this processor.
template <class Scalar, class Function>
decltype(auto) with_packed_product(Function&& f) {
  return with_compiled_set(gemm_instruction_set(), [&f](auto compiled) -> decltype(auto) {
    return f(PackedProduct<Scalar, typename TileOf<Scalar, compiled()>::Narrow>{});
  });
}

}}}  // namespace lockstep::kernel::detail
