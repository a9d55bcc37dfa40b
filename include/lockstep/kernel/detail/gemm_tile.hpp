// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {

/// One tile of C = alpha * A B + beta * C + bias.
template <class T>
struct GemmTile {
  Index rows, columns;  ///< valid ones; at most the tile's
  Index k;
  T const* a;  ///< element (i, p) at a[i * a_row + p * a_step]
  Index a_row, a_step;
  T const* b;  ///< packed: step p's columns at b + p * tile columns, zero beyond the valid ones
  T alpha, beta;
  T const* bias;  ///< one per column, or null
  T* c;
  Index c_row;
};

#if defined(__GNUC__)
#define LOCKSTEP_INLINED [[gnu::always_inline]] inline
#else
#define LOCKSTEP_INLINED inline
#endif

/// The tile's arithmetic: `rows` x `vectors` accumulators stay in registers for the whole of k. One body for every
/// instruction set: it is inlined into functions compiled for each. Rows beyond the valid ones repeat the last one and
/// are not stored.
template <class T, std::size_t bytes, std::size_t rows, std::size_t vectors>
LOCKSTEP_INLINED void multiply_tile(GemmTile<T> const& tile) {
#if defined(__clang__)
#pragma clang fp contract(fast)
#endif
  typedef T Vector __attribute__((vector_size(bytes)));
  constexpr std::size_t width = vectors * bytes / sizeof(T);
  constexpr Index lanes = bytes / sizeof(T), last_row = rows, last_vector = vectors;
  Vector sum[rows][vectors];
  T const* row[rows];
  auto const k = tile.k, step = tile.a_step, a_row = tile.a ? tile.a_row : 0;
  auto const* b = tile.b;
  for (Index i = 0; i < last_row; ++i) {
    // Where the result goes: it need not have arrived before it is written.
    if (i < tile.rows)
      for (std::size_t byte = 0; byte < width * sizeof(T); byte += 64)
        __builtin_prefetch(reinterpret_cast<char const*>(tile.c + i * tile.c_row) + byte, 1);
    row[i] = tile.a + (i < tile.rows ? i : tile.rows - 1) * a_row;
    for (Index v = 0; v < last_vector; ++v) sum[i][v] = Vector{};
  }
  for (Index p = 0; p < k; ++p, b += width) {
    Vector y[vectors];
    for (Index v = 0; v < last_vector; ++v) __builtin_memcpy(&y[v], b + v * lanes, sizeof(Vector));
    for (Index i = 0; i < last_row; ++i) {
      T const x = row[i][p * step];
      for (Index v = 0; v < last_vector; ++v) sum[i][v] += x * y[v];
    }
  }
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
#undef LOCKSTEP_INLINED

// A multiply-add that rounds once is wanted here, and only here: it is twice as fast and closer to the exact sum.
#if defined(__clang__)
#define LOCKSTEP_FUSED [[gnu::noinline]]
#define LOCKSTEP_FUSED_FOR(set) [[gnu::target(set), gnu::noinline]]
#else
#define LOCKSTEP_FUSED [[gnu::noinline, gnu::optimize("O3", "fp-contract=fast")]]
#define LOCKSTEP_FUSED_FOR(set) [[gnu::target(set), gnu::noinline, gnu::optimize("O3", "fp-contract=fast")]]
#endif

/// Tile sizes and code for the build's own instructions: vectors of 16 bytes, 32 registers of them on aarch64 and 16
/// elsewhere.
template <class T>
struct BaselineTile {
#if defined(__aarch64__)
  static constexpr Index rows = 8, columns = 2 * 16 / Index{sizeof(T)};
#else
  static constexpr Index rows = 4, columns = 2 * 16 / Index{sizeof(T)};
#endif
  LOCKSTEP_FUSED static void multiply(GemmTile<T> const& tile) { multiply_tile<T, 16, rows, 2>(tile); }
};

#if LOCKSTEP_HAS_INSTRUCTION_SETS
template <class T>
struct Avx2Tile {
  static constexpr Index rows = 6, columns = 2 * 32 / Index{sizeof(T)};
  LOCKSTEP_FUSED_FOR("avx2,fma") static void multiply(GemmTile<T> const& tile) { multiply_tile<T, 32, rows, 2>(tile); }
};

template <class T>
struct Avx512Tile {
  static constexpr Index rows = 8, columns = 2 * 64 / Index{sizeof(T)};
  LOCKSTEP_FUSED_FOR("avx512f,avx512vl,fma") static void multiply(GemmTile<T> const& tile) {
    multiply_tile<T, 64, rows, 2>(tile);
  }
};
#endif

#undef LOCKSTEP_FUSED
#undef LOCKSTEP_FUSED_FOR

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
