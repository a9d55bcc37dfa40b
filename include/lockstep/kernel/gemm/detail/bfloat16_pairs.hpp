// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/lanes.hpp>
#include <lockstep/kernel/gemm/detail/gemm_pack.hpp>
#include <lockstep/kernel/gemm/detail/strided.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Two steps of a matrix product's factor, rounded to bfloat16. The first step is in the lower half.
using Bfloat16Pair = std::uint32_t;

#if LOCKSTEP_HAS_BFLOAT16_PRODUCTS

// The instructions are written as assembly: the header of the intrinsics takes longer to compile than all of this, and
// compilers disagree about the types. The instructions round to nearest, ties to even, and treat subnormal numbers as
// zero. Functions that use them must be compiled for AVX-512.

typedef Bfloat16Pair PairLanes __attribute__((vector_size(64)));

/// Computes sum[x] += a's first * b[x]'s first + a's second * b[x]'s second.
template <class Sums>
[[gnu::always_inline]] inline void add_products(Sums& sum, Bfloat16Pair a, PairLanes const& b) noexcept {
  PairLanes const all = a - PairLanes{};  // a in every lane
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(all), "v"(b));
}

[[nodiscard]] constexpr Bfloat16Pair paired(float first, float second) noexcept {
  return Bfloat16Pair{bfloat16(first).bits} | Bfloat16Pair{bfloat16(second).bits} << 16;
}

/// Packs adjacent elements into pairs: to[p] holds from[2 p] and from[2 p + 1], or zero after the end.
[[gnu::always_inline]] inline void pair_adjacent(float const* from, Index count, Bfloat16Pair* to) noexcept {
  typedef float Floats __attribute__((vector_size(64)));
  Index i = 0;
  for (; i + 32 <= count; i += 32) {
    Floats first, second;
    PairLanes pairs;
    load(first, from + i);
    load(second, from + i + 16);
    asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(pairs) : "v"(first), "v"(second));
    store(to + i / 2, pairs);
  }
  for (; i < count; i += 2) to[i / 2] = paired(from[i], i + 1 < count ? from[i + 1] : 0);
}

/// Packs two rows into pairs: to[x] holds first[x] and second[x], or zero if `second` is null.
[[gnu::always_inline]] inline void pair_rows(float const* first, float const* second, Index count,
                                             Bfloat16Pair* to) noexcept {
  typedef float Floats __attribute__((vector_size(64)));
  typedef std::uint16_t Rounded __attribute__((vector_size(32)));
  Index x = 0;
  for (; x + 16 <= count; x += 16) {
    Floats row;
    Rounded low, high{};
    load(row, first + x);
    asm("vcvtneps2bf16 %1, %0" : "=v"(low) : "v"(row));
    if (second) {
      load(row, second + x);
      asm("vcvtneps2bf16 %1, %0" : "=v"(high) : "v"(row));
    }
    PairLanes const pairs = __builtin_convertvector(low, PairLanes) | __builtin_convertvector(high, PairLanes) << 16;
    store(to + x, pairs);
  }
  for (; x < count; ++x) to[x] = paired(first[x], second ? second[x] : 0);
}

/// Version of pack_panel that packs pairs of steps. One of B's strides must be 1.
template <Index width>
[[gnu::always_inline]] inline void pack_panel_of_pairs(Strided<float const> b, Index depth, Index valid,
                                                       Bfloat16Pair* out) noexcept {
  constexpr Index lanes = 16;
  Index const steps = (depth + 1) / 2;
  if (b.column == 1) {
    for (Index p = 0; p < steps; ++p) {
      auto const* const first = b.data + 2 * p * b.row;
      pair_rows(first, 2 * p + 1 < depth ? first + b.row : nullptr, valid, out + p * width);
    }
  } else {
    Bfloat16Pair rows[lanes * lanes];
    for (Index x = 0; x < valid; x += lanes) {
      Index const columns = valid - x < lanes ? valid - x : lanes;
      for (Index p = 0; p < steps; p += lanes) {
        Index const here = depth - 2 * p < 2 * lanes ? depth - 2 * p : 2 * lanes;
        for (Index c = 0; c < columns; ++c) pair_adjacent(b.data + (x + c) * b.column + 2 * p, here, rows + c * lanes);
        if (columns == lanes && here == 2 * lanes) {
          transpose_square<Bfloat16Pair, 64>(rows, lanes, out + p * width + x, width);
        } else {
          for (Index q = 0; q < (here + 1) / 2; ++q)
            for (Index c = 0; c < columns; ++c) out[(p + q) * width + x + c] = rows[c * lanes + q];
        }
      }
    }
  }
  for (Index p = 0; p < steps; ++p)
    for (Index x = valid; x < width; ++x) out[p * width + x] = 0;
}

/// Packs pairs of steps of B's columns; the pairs of a column are contiguous. Column x begins at out + x * out_row and
/// is padded with zeros up to `all` steps, a multiple of 16. B's rows are contiguous.
[[gnu::always_inline]] inline void pack_columns_as_rows(Strided<float const> b, Index depth, Index columns,
                                                        Bfloat16Pair* out, Index all) noexcept {
  constexpr Index lanes = 16;
  Bfloat16Pair square[lanes * lanes] = {};
  for (Index p = 0; p < all; p += lanes) {
    for (Index x = 0; x < columns; x += lanes) {
      Index const here = columns - x < lanes ? columns - x : lanes;
      for (Index q = 0; q < lanes; ++q) {
        Index const step = 2 * (p + q);
        auto const* const first = b.data + step * b.row + x;
        if (step < depth)
          pair_rows(first, step + 1 < depth ? first + b.row : nullptr, here, square + q * lanes);
        else
          for (Index c = 0; c < lanes; ++c) square[q * lanes + c] = 0;
      }
      transpose_square<Bfloat16Pair, 64>(square, lanes, out + x * all + p, all);
    }
  }
}

#endif

}}}  // namespace lockstep::kernel::detail
