// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <utility>

#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/gemm/detail/bfloat16_pairs.hpp>
#include <lockstep/kernel/gemm/detail/gemm_pack.hpp>
#include <lockstep/kernel/gemm/detail/prefetch.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// One tile of C = alpha * A B + beta * C + bias. A Factor holds what A and B have at one step: a Scalar, or a pair of
/// bfloat16.
template <class Scalar, class Factor = Scalar>
struct GemmTile {
  Index rows, columns;  ///< valid ones; at most the tile's
  Index k;              ///< steps
  Factor const* a;      ///< element (i, p) at a[i * a_row + p * a_step]
  Index a_row, a_step;
  Factor const* b;  ///< step p's columns at b + p * b_step: as many as the tile has, zero after the valid ones
  Index b_step;
  Scalar alpha, beta;
  Scalar const* bias;  ///< one per column, or null
  Scalar* c;
  Index c_row;
  Prefetch* prefetch;  ///< prefetch of the data that is read after this tile, or null
};

/// Writes C from the sums of a tile with fewer columns than its `width`. Neither reads nor writes C beyond those
/// columns. One function serves all tiles: such tiles are few, and each version takes long to compile.
template <class Scalar, class Factor>
[[gnu::noinline]] void store_narrow(GemmTile<Scalar, Factor> const& tile, Scalar const* sums, Index width) {
  for (Index i = 0; i < tile.rows; ++i) {
    for (Index j = 0; j < tile.columns; ++j) {
      auto& to = tile.c[i * tile.c_row + j];
      Scalar out = tile.alpha * sums[i * width + j] + (tile.bias ? tile.bias[j] : Scalar(0));
      if (tile.beta != 0) out += tile.beta * to;
      to = out;
    }
  }
}

/// Computes sum[x] += a * b[x].
template <class Sums, class Scalar, class Factors>
[[gnu::always_inline]] inline void add_products(Sums& sum, Scalar a, Factors const& b) noexcept {
#if defined(__clang__)
#pragma clang fp contract(fast)
#endif
  sum += a * b;
}

/// Computes a tile: `rows` x `vectors` accumulators stay in registers over all of k. The body is inlined into functions
/// compiled for each instruction set. Rows after the valid ones repeat the last valid row and are not stored. Meanwhile
/// prefetches C and the data that follows in A, a few lines at a time.
/// `at` counts the accumulators. They are constants because indices of arrays in registers must be.
template <class Scalar, std::size_t bytes, Index rows, Index vectors, class Factor, Index... at>
[[gnu::always_inline]] inline void multiply_tile(GemmTile<Scalar, Factor> const& tile,
                                                 std::integer_sequence<Index, at...>) {
#if defined(__clang__)
#pragma clang fp contract(fast)
#endif
  typedef Scalar Vector __attribute__((vector_size(bytes)));
  typedef Scalar Unaligned __attribute__((vector_size(bytes), aligned(sizeof(Scalar)), may_alias));
  typedef Factor FactorLanes __attribute__((vector_size(bytes)));
  typedef Factor UnalignedFactors __attribute__((vector_size(bytes), aligned(sizeof(Scalar)), may_alias));
  static_assert(sizeof(Factor) == sizeof(Scalar));
  constexpr Index lanes = bytes / sizeof(Scalar), width = vectors * lanes, line = 64 / sizeof(Scalar);
  constexpr Index prefetch_steps = 8, several = 4;
  // A narrow tile finishes one line of steps so fast that the work between two lines matters.
  constexpr Index chunk = width <= line ? 4 * line : line;
  Vector sum[sizeof...(at)] = {};
  Factor const* row[std::size_t{rows}];
  FactorLanes y[std::size_t{vectors}];
  auto const k = tile.k, step = tile.a_step, b_step = tile.b_step, c_row = tile.c_row, a_row = tile.a ? tile.a_row : 0;
  auto const* b = tile.b;
  auto prefetch = tile.prefetch ? *tile.prefetch : Prefetch{};
  auto const fetch_c = [&](Index i) {
    if (i < tile.rows)
      for (Index j = 0; j < width; j += line) __builtin_prefetch(tile.c + i * c_row + j, 1);
  };
  for (Index i = 0; i < rows; ++i) {
    if (i >= k / chunk) fetch_c(i);
    row[i] = tile.a + (i < tile.rows ? i : tile.rows - 1) * a_row;
  }
  for (Index p = 0; p < k;) {
    if (p / chunk < rows) fetch_c(p / chunk);
    prefetch.fetch();
    // If rows are contiguous, prefetch the next tile's rows; if columns are, the next steps.
    if (step == 1)
      for (Index i = 0; i < rows; ++i)
        for (Index l = 0; l < chunk; l += line) __builtin_prefetch(row[i] + p + l + rows * a_row);
    Index const end = p + chunk < k ? p + chunk : k;
    // If both strides are constants, several steps share the address arithmetic.
    if (step == 1 && b_step == width) {
      for (; p + several <= end; p += several, b += several * width) {
        for (Index u = 0; u < several; ++u) {
          for (Index v = 0; v < vectors; ++v)
            y[v] = *reinterpret_cast<UnalignedFactors const*>(b + u * width + v * lanes);
          (add_products(sum[at], row[at / vectors][p + u], y[at % vectors]), ...);
        }
      }
    }
    if constexpr (width <= line) {  // such a tile's rows may be copied in its own order
      if (a_row == 1 && step == rows && b_step == width) {
        for (; p + several <= end; p += several, b += several * width) {
          for (Index u = 0; u < several; ++u) {
            for (Index v = 0; v < vectors; ++v)
              y[v] = *reinterpret_cast<UnalignedFactors const*>(b + u * width + v * lanes);
            (add_products(sum[at], row[at / vectors][(p + u) * rows], y[at % vectors]), ...);
          }
        }
      }
    }
    for (; p < end; ++p, b += b_step) {
      if (step != 1) __builtin_prefetch(row[0] + (p + prefetch_steps) * step);
      for (Index v = 0; v < vectors; ++v) y[v] = *reinterpret_cast<UnalignedFactors const*>(b + v * lanes);
      (add_products(sum[at], row[at / vectors][p * step], y[at % vectors]), ...);
    }
  }
  if (tile.prefetch) *tile.prefetch = prefetch;
  auto const valid = tile.rows;
  auto const alpha = tile.alpha, beta = tile.beta;
  auto const* const bias = tile.bias;
  auto* const c = tile.c;
  if (tile.columns == width) {
    Vector constant[std::size_t{vectors}] = {};
    for (Index v = 0; bias && v < vectors; ++v) constant[v] = *reinterpret_cast<Unaligned const*>(bias + v * lanes);
    ((sum[at] = alpha * sum[at] + constant[at % vectors]), ...);
    if (beta != 0)
      ((sum[at] += at / vectors < valid
                       ? beta * *reinterpret_cast<Unaligned const*>(c + at / vectors * c_row + at % vectors * lanes)
                       : Vector{}),
       ...);
    ((at / vectors < valid
          ? void(*reinterpret_cast<Unaligned*>(c + at / vectors * c_row + at % vectors * lanes) = sum[at])
          : void()),
     ...);
    return;
  }
  Scalar full[sizeof...(at) * bytes / sizeof(Scalar)];
  ((*reinterpret_cast<Unaligned*>(full + at * lanes) = sum[at]), ...);
  store_narrow(tile, full, width);
}

/// Rows of A that multiply_few_rows takes at most. With more rows, packing B for many rows at once is faster.
inline constexpr Index few_rows = 16;

/// Steps that multiply_few_rows packs at once: B's lines, their packed copy and the prefetched lines fit the
/// first-level cache.
inline constexpr Index few_rows_steps = 64;

/// Adds products of some rows of A with a packed panel of two vectors' columns to their sums, [rows, 2] vectors that
/// `at` counts. A's steps are contiguous. Rows after the valid ones repeat the last valid row.
template <class Scalar, std::size_t bytes, Index... at>
[[gnu::always_inline]] inline void add_rows(Strided<Scalar const> a, Index valid, Index steps, Scalar const* packed,
                                            Scalar* sums, std::integer_sequence<Index, at...>) noexcept {
  typedef Scalar Vector __attribute__((vector_size(bytes), may_alias));
  constexpr Index lanes = bytes / sizeof(Scalar), rows = sizeof...(at) / 2;
  auto* const all = reinterpret_cast<Vector*>(sums);
  Vector sum[] = {all[at]...}, y[2];
  Scalar const* row[std::size_t{rows}];
  for (Index i = 0; i < rows; ++i) row[i] = a.data + (i < valid ? i : valid - 1) * a.row;
  for (Index u = 0; u < steps; ++u) {
    y[0] = *reinterpret_cast<Vector const*>(packed + 2 * u * lanes);
    y[1] = *reinterpret_cast<Vector const*>(packed + (2 * u + 1) * lanes);
    (add_products(sum[at], row[at / 2][u], y[at % 2]), ...);
  }
  ((all[at] = sum[at]), ...);
}

/// Computes C = A B + bias for few rows of A, whose steps are contiguous, if B's columns are contiguous, as those of a
/// transposed weight. Reads B once: packs a few steps of two vectors' columns at a time, which stay in the first-level
/// cache, and prefetches the steps that follow. Bits are those of tiles that take `pass_steps` steps of k at once.
template <class Scalar, std::size_t bytes>
[[gnu::always_inline]] inline void multiply_few_rows(Strided<Scalar const> a, Index m, Strided<Scalar const> b, Index n,
                                                     Index k, Index pass_steps, Scalar const* bias, Scalar* c,
                                                     Index c_row) {
  constexpr Index lanes = bytes / sizeof(Scalar), width = 2 * lanes, line = 64 / Index{sizeof(Scalar)};
  alignas(64) Scalar packed[std::size_t{few_rows_steps * width}], sums[std::size_t{few_rows * width}];
  for (Index j = 0; j < n; j += width) {
    Index const valid = n - j < width ? n - j : width;
    for (Index begin = 0; begin == 0 || begin < k; begin += pass_steps) {
      Index const end = k - begin < pass_steps ? k : begin + pass_steps;
      for (Index x = 0; x < few_rows * width; ++x) sums[x] = 0;
      for (Index p = begin; p < end; p += few_rows_steps) {
        Index const steps = end - p < few_rows_steps ? end - p : few_rows_steps;
        for (Index u = 0; u < steps; u += line) {
          auto const ahead = p + u + few_rows_steps;
          auto const next = ahead < k ? b.at(ahead, j) : b.at(ahead - k, j + width);
          for (Index x = 0; x < width; ++x) __builtin_prefetch(next.data + x * next.column);
          Index const here = steps - u < line ? steps - u : line;
          if (here == line && valid == width) {  // whole lines of cache, row by row
            for (Index x = 0; x < width; x += lanes)
              for (Index v = 0; v < line; v += lanes)
                transpose_square<Scalar, bytes>(b.at(p + u + v, j + x).data, b.column, packed + (u + v) * width + x,
                                                width);
          } else {
            pack_panel<Scalar, bytes, width>(b.at(p + u, j), here, valid, packed + u * width);
          }
        }
        for (Index i = 0; i < m;) {
          auto const from = a.at(i, p);
          auto* const to = sums + i * width;
          if (m - i > 2) {
            add_rows<Scalar, bytes>(from, m - i, steps, packed, to, std::make_integer_sequence<Index, 8>{});
            i += 4;
          } else if (m - i == 2) {
            add_rows<Scalar, bytes>(from, 2, steps, packed, to, std::make_integer_sequence<Index, 4>{});
            i += 2;
          } else {
            add_rows<Scalar, bytes>(from, 1, steps, packed, to, std::make_integer_sequence<Index, 2>{});
            ++i;
          }
        }
      }
      for (Index i = 0; i < m; ++i) {
        auto* const to = c + i * c_row + j;
        for (Index x = 0; x < valid; ++x)
          to[x] = sums[i * width + x] + (begin > 0 ? to[x] : bias ? bias[j + x] : Scalar(0));
      }
    }
  }
}

// Only these functions use multiply-adds that round once: they are twice as fast and closer to the exact sum.
#if defined(__clang__)
#define LOCKSTEP_COMPILED_FOR(...) [[__VA_ARGS__ gnu::noinline]]
#else
#define LOCKSTEP_COMPILED_FOR(...) [[ gnu::optimize("O3", "fp-contract=fast"), __VA_ARGS__ gnu::noinline ]]
#endif

/// Rows that are passed to `epilogue` while they are in cache: a multiple of each tile's rows.
inline constexpr Index row_block = 48;

/// Bytes of the columns of a tile for one row.
inline constexpr Index single_row_bytes = 256;

/// Tiles in the build's own instructions: vectors of 16 bytes, in 32 registers on aarch64 and 16 elsewhere. `pack`
/// packs columns of B and `pack_rows` rows of A, step by step. For tiles whose columns take one cache line, rows are
/// packed for one tile, and for others up to row_block. `Narrow` is for few columns. `Low` has one row less, for
/// numbers of rows that are not a multiple. `Single` is for one row, with single_row_bytes of columns.
#if defined(__aarch64__)
template <class Scalar, Index rows_ = 6, Index vectors_ = 4>
struct BaselineTile {
  using Narrow = BaselineTile<Scalar, 8, 2>;
  using Low = BaselineTile<Scalar, 5, 4>;
  using Single = BaselineTile<Scalar, 1, single_row_bytes / 16>;
#else
template <class Scalar, Index rows_ = 4, Index vectors_ = 2>
struct BaselineTile {
  using Narrow = BaselineTile;
  using Low = BaselineTile;
  using Single = BaselineTile<Scalar, 1, single_row_bytes / 16>;
#endif
  using Factor = Scalar;
  static constexpr Index rows = rows_, columns = vectors_ * 16 / Index{sizeof(Scalar)};
  LOCKSTEP_COMPILED_FOR()
  static void multiply_few_rows(Strided<Scalar const> a, Index m, Strided<Scalar const> b, Index n, Index k,
                                Index pass_steps, Scalar const* bias, Scalar* c, Index c_row) {
    detail::multiply_few_rows<Scalar, 16>(a, m, b, n, k, pass_steps, bias, c, c_row);
  }
  LOCKSTEP_COMPILED_FOR() static void multiply(GemmTile<Scalar> const& tile) {
    multiply_tile<Scalar, 16, rows_, vectors_>(tile, std::make_integer_sequence<Index, rows_ * vectors_>{});
  }
  LOCKSTEP_COMPILED_FOR() static void pack(Strided<Scalar const> b, Index depth, Index count, Scalar* out) {
    pack_panels<Scalar, 16, columns>(b, depth, count, out);
  }
  LOCKSTEP_COMPILED_FOR() static void pack_rows(Strided<Scalar const> a, Index depth, Index count, Scalar* out) {
    pack_panel<Scalar, 16, rows>({a.data, a.column, a.row}, depth, count, out);
  }
};

#if LOCKSTEP_HAS_INSTRUCTION_SETS
template <class Scalar, Index rows_ = 6, Index vectors_ = 2>
struct Avx2Tile {
  using Narrow = Avx2Tile;
  using Low = Avx2Tile<Scalar, 5>;
  using Single = Avx2Tile<Scalar, 1, single_row_bytes / 32>;
  using Factor = Scalar;
  static constexpr Index rows = rows_, columns = vectors_ * 32 / Index{sizeof(Scalar)};
  LOCKSTEP_COMPILED_FOR(gnu::target("avx2,fma"), )
  static void multiply_few_rows(Strided<Scalar const> a, Index m, Strided<Scalar const> b, Index n, Index k,
                                Index pass_steps, Scalar const* bias, Scalar* c, Index c_row) {
    detail::multiply_few_rows<Scalar, 32>(a, m, b, n, k, pass_steps, bias, c, c_row);
  }
  LOCKSTEP_COMPILED_FOR(gnu::target("avx2,fma"), ) static void multiply(GemmTile<Scalar> const& tile) {
    multiply_tile<Scalar, 32, rows_, vectors_>(tile, std::make_integer_sequence<Index, rows_ * vectors_>{});
  }
  LOCKSTEP_COMPILED_FOR(gnu::target("avx2,fma"), )
  static void pack(Strided<Scalar const> b, Index depth, Index count, Scalar* out) {
    pack_panels<Scalar, 32, columns>(b, depth, count, out);
  }
  LOCKSTEP_COMPILED_FOR(gnu::target("avx2,fma"), )
  static void pack_rows(Strided<Scalar const> a, Index depth, Index count, Scalar* out) {
    pack_panel<Scalar, 32, rows>({a.data, a.column, a.row}, depth, count, out);
  }
};

template <class Scalar, Index rows_ = 6, Index vectors_ = 4>
struct Avx512Tile {
  using Narrow = Avx512Tile<Scalar, 8, 2>;
  using Low = Avx512Tile<Scalar, 5, 4>;
  using Single = Avx512Tile<Scalar, 1, single_row_bytes / 64>;
  using Factor = Scalar;
  static constexpr Index rows = rows_, columns = vectors_ * 64 / Index{sizeof(Scalar)};
  LOCKSTEP_COMPILED_FOR(gnu::target("avx512f,avx512vl,fma"), )
  static void multiply_few_rows(Strided<Scalar const> a, Index m, Strided<Scalar const> b, Index n, Index k,
                                Index pass_steps, Scalar const* bias, Scalar* c, Index c_row) {
    detail::multiply_few_rows<Scalar, 64>(a, m, b, n, k, pass_steps, bias, c, c_row);
  }
  LOCKSTEP_COMPILED_FOR(gnu::target("avx512f,avx512vl,fma"), ) static void multiply(GemmTile<Scalar> const& tile) {
    multiply_tile<Scalar, 64, rows_, vectors_>(tile, std::make_integer_sequence<Index, rows_ * vectors_>{});
  }
  LOCKSTEP_COMPILED_FOR(gnu::target("avx512f,avx512vl,fma"), )
  static void pack(Strided<Scalar const> b, Index depth, Index count, Scalar* out) {
    pack_panels<Scalar, 64, columns>(b, depth, count, out);
  }
  LOCKSTEP_COMPILED_FOR(gnu::target("avx512f,avx512vl,fma"), )
  static void pack_rows(Strided<Scalar const> a, Index depth, Index count, Scalar* out) {
    pack_panels<Scalar, 64, row_block>({a.data, a.column, a.row}, depth, count, out);
  }
};
#endif

#if LOCKSTEP_HAS_BFLOAT16_PRODUCTS
/// Tile for factors rounded to bfloat16, on processors that multiply two steps at once. `pack_rows` packs rows with
/// contiguous steps unchanged, one after the other.
template <Index rows_ = 6, Index vectors_ = 4>
struct Bfloat16Tile {
  using Narrow = Bfloat16Tile<8, 2>;
  using Low = Bfloat16Tile<5, 4>;
  using Factor = Bfloat16Pair;
  static constexpr Index rows = rows_, columns = vectors_ * 16;
  LOCKSTEP_COMPILED_FOR(gnu::target("avx512f,avx512vl,fma"), )
  static void multiply(GemmTile<float, Factor> const& tile) {
    multiply_tile<float, 64, rows_, vectors_>(tile, std::make_integer_sequence<Index, rows_ * vectors_>{});
  }
  LOCKSTEP_COMPILED_FOR(gnu::target("avx512f,avx512vl,fma"), )
  static void pack(Strided<float const> b, Index depth, Index count, Factor* out) {
    for (Index j = 0; j < count; j += columns, out += columns * ((depth + 1) / 2))
      pack_panel_of_pairs<columns>(b.at(0, j), depth, count - j < columns ? count - j : columns, out);
  }
  LOCKSTEP_COMPILED_FOR(gnu::target("avx512f,avx512vl,fma"), )
  static void pack_rows(Strided<float const> a, Index depth, Index count, Factor* out) {
    if (a.column != 1) return pack_panel_of_pairs<row_block>({a.data, a.column, a.row}, depth, count, out);
    for (Index i = 0; i < count; ++i, out += (depth + 1) / 2) pair_adjacent(a.data + i * a.row, depth, out);
  }
};
#endif

#undef LOCKSTEP_COMPILED_FOR

template <class Scalar, InstructionSet set>
struct TileFor {
  using type = BaselineTile<Scalar>;
};
#if LOCKSTEP_HAS_INSTRUCTION_SETS
template <class Scalar>
struct TileFor<Scalar, InstructionSet::avx2> {
  using type = Avx2Tile<Scalar>;
};
template <class Scalar>
struct TileFor<Scalar, InstructionSet::avx512> {
  using type = Avx512Tile<Scalar>;
};
#endif
/// The tile for an instruction set.
template <class Scalar, InstructionSet set>
using TileOf = typename TileFor<Scalar, set>::type;

}}}  // namespace lockstep::kernel::detail
