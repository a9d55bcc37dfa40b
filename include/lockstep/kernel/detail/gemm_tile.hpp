// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/ahead.hpp>
#include <lockstep/kernel/detail/gemm_pack.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {

/// One tile of C = alpha * A B + beta * C + bias.
template <class T>
struct GemmTile {
  Index rows, columns;  ///< valid ones; at most the tile's
  Index k;
  T const* a;  ///< element (i, p) at a[i * a_row + p * a_step]
  Index a_row, a_step;
  T const* b;  ///< step p's columns at b + p * b_step: as many as the tile has, zero beyond the valid ones
  Index b_step;
  T alpha, beta;
  T const* bias;  ///< one per column, or null
  T* c;
  Index c_row;
  Ahead* ahead;  ///< what is read after this tile, or null
};

/// The tile's arithmetic: `rows` x `vectors` accumulators stay in registers for the whole of k. One body for every
/// instruction set: it is inlined into functions compiled for each. Rows beyond the valid ones repeat the last one and
/// are not stored. What the tile stores to, and what of A follows, is asked for a little at a time in between: neither
/// has to be waited for.
template <class T, std::size_t bytes, std::size_t rows, std::size_t vectors>
LOCKSTEP_INLINED void multiply_tile(GemmTile<T> const& tile) {
#if defined(__clang__)
#pragma clang fp contract(fast)
#endif
  typedef T Vector __attribute__((vector_size(bytes)));
  constexpr std::size_t width = vectors * bytes / sizeof(T);
  constexpr Index lanes = bytes / sizeof(T), last_row = rows, last_vector = vectors, line = 64 / sizeof(T);
  constexpr Index steps_ahead = 8;
  Vector sum[rows][vectors];
  T const* row[rows];
  auto const k = tile.k, step = tile.a_step, b_step = tile.b_step, a_row = tile.a ? tile.a_row : 0;
  auto const* b = tile.b;
  auto ahead = tile.ahead ? *tile.ahead : Ahead{};
  auto const fetch_c = [&](Index i) {
    if (i < tile.rows)
      for (Index j = 0; j < static_cast<Index>(width); j += line) __builtin_prefetch(tile.c + i * tile.c_row + j, 1);
  };
  for (Index i = 0; i < last_row; ++i) {
    if (i >= k / line) fetch_c(i);
    row[i] = tile.a + (i < tile.rows ? i : tile.rows - 1) * a_row;
    for (Index v = 0; v < last_vector; ++v) sum[i][v] = Vector{};
  }
  for (Index p = 0; p < k;) {
    if (p / line < last_row) fetch_c(p / line);
    ahead.fetch();
    // Of rows that lie contiguously, the next tile's; of columns, the next steps'.
    if (step == 1)
      for (Index i = 0; i < last_row; ++i) __builtin_prefetch(row[i] + p + last_row * a_row);
    for (Index const end = p + line < k ? p + line : k; p < end; ++p, b += b_step) {
      if (step != 1) __builtin_prefetch(row[0] + (p + steps_ahead) * step);
      Vector y[vectors];
      for (Index v = 0; v < last_vector; ++v) __builtin_memcpy(&y[v], b + v * lanes, sizeof(Vector));
      for (Index i = 0; i < last_row; ++i) {
        T const x = row[i][p * step];
        for (Index v = 0; v < last_vector; ++v) sum[i][v] += x * y[v];
      }
    }
  }
  if (tile.ahead) *tile.ahead = ahead;
  // A narrow tile passes through full rows, so that nothing beyond its columns is read or written.
  bool const narrow = tile.columns < static_cast<Index>(width);
  T full[width] = {}, full_bias[width] = {};
  for (Index j = 0; narrow && tile.bias && j < tile.columns; ++j) full_bias[j] = tile.bias[j];
  auto const* bias = narrow && tile.bias ? full_bias : tile.bias;
  for (Index i = 0; i < last_row; ++i) {
    if (i >= tile.rows) break;
    auto* const c = tile.c + i * tile.c_row;
    auto* const to = narrow ? full : c;
    for (Index j = 0; narrow && tile.beta != 0 && j < tile.columns; ++j) full[j] = c[j];
    for (Index v = 0; v < last_vector; ++v) {
      Vector out = tile.alpha * sum[i][v], other;
      if (bias) {
        __builtin_memcpy(&other, bias + v * lanes, sizeof(Vector));
        out += other;
      }
      if (tile.beta != 0) {
        __builtin_memcpy(&other, to + v * lanes, sizeof(Vector));
        out += tile.beta * other;
      }
      __builtin_memcpy(to + v * lanes, &out, sizeof(Vector));
    }
    for (Index j = 0; narrow && j < tile.columns; ++j) c[j] = full[j];
  }
}

// A multiply-add that rounds once is wanted here, and only here: it is twice as fast and closer to the exact sum.
#if defined(__clang__)
#define LOCKSTEP_COMPILED_FOR(...) [[__VA_ARGS__ gnu::noinline]]
#else
#define LOCKSTEP_COMPILED_FOR(...) [[ __VA_ARGS__ gnu::noinline, gnu::optimize("O3", "fp-contract=fast") ]]
#endif

/// Tiles in the build's own instructions: vectors of 16 bytes, 32 registers of them on aarch64 and 16 elsewhere.
/// `Narrow` is for few columns; `Low` has one row less, for rows that are no multiple.
#if defined(__aarch64__)
template <class T, Index rows_ = 6, Index vectors_ = 4>
struct BaselineTile {
  using Narrow = BaselineTile<T, 8, 2>;
  using Low = BaselineTile<T, 5, 4>;
#else
template <class T, Index rows_ = 4, Index vectors_ = 2>
struct BaselineTile {
  using Narrow = BaselineTile;
  using Low = BaselineTile;
#endif
  static constexpr Index rows = rows_, columns = vectors_ * 16 / Index{sizeof(T)};
  LOCKSTEP_COMPILED_FOR() static void multiply(GemmTile<T> const& tile) { multiply_tile<T, 16, rows_, vectors_>(tile); }
  LOCKSTEP_COMPILED_FOR() static void pack(Strided<T const> b, Index depth, Index count, T* out) {
    pack_panels<T, 16, columns>(b, depth, count, out);
  }
};

#if LOCKSTEP_HAS_INSTRUCTION_SETS
template <class T, Index rows_ = 6>
struct Avx2Tile {
  using Narrow = Avx2Tile;
  using Low = Avx2Tile<T, 5>;
  static constexpr Index rows = rows_, columns = 2 * 32 / Index{sizeof(T)};
  LOCKSTEP_COMPILED_FOR(gnu::target("avx2,fma"), ) static void multiply(GemmTile<T> const& tile) {
    multiply_tile<T, 32, rows_, 2>(tile);
  }
  LOCKSTEP_COMPILED_FOR(gnu::target("avx2,fma"), )
  static void pack(Strided<T const> b, Index depth, Index count, T* out) {
    pack_panels<T, 32, columns>(b, depth, count, out);
  }
};

template <class T, Index rows_ = 6, Index vectors_ = 4>
struct Avx512Tile {
  using Narrow = Avx512Tile<T, 8, 2>;
  using Low = Avx512Tile<T, 5, 4>;
  static constexpr Index rows = rows_, columns = vectors_ * 64 / Index{sizeof(T)};
  LOCKSTEP_COMPILED_FOR(gnu::target("avx512f,avx512vl,fma"), ) static void multiply(GemmTile<T> const& tile) {
    multiply_tile<T, 64, rows_, vectors_>(tile);
  }
  LOCKSTEP_COMPILED_FOR(gnu::target("avx512f,avx512vl,fma"), )
  static void pack(Strided<T const> b, Index depth, Index count, T* out) {
    pack_panels<T, 64, columns>(b, depth, count, out);
  }
};
#endif

#undef LOCKSTEP_COMPILED_FOR
#undef LOCKSTEP_INLINED

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
