// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>

#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/gemm/detail/bfloat16_pairs.hpp>
#include <lockstep/kernel/gemm/detail/gemm_tile.hpp>
#include <lockstep/kernel/gemm/detail/strided.hpp>

#if LOCKSTEP_HAS_BFLOAT16_PRODUCTS

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Configuration of the eight tile registers at their largest size: 16 rows of 64 bytes.
struct alignas(64) AmxConfiguration {
  std::array<std::uint8_t, 16> palette{1};
  std::array<std::uint16_t, 16> row_bytes{64, 64, 64, 64, 64, 64, 64, 64};
  std::array<std::uint8_t, 16> rows{16, 16, 16, 16, 16, 16, 16, 16};
};
inline constexpr AmxConfiguration amx_configuration{};

/// Guard that lets the calling thread multiply AmxTiles. Configures the thread's tile registers, and releases them when
/// the thread's last guard is destroyed.
class AmxRegisters {
 public:
  AmxRegisters() noexcept {
    if (users_++ == 0) asm volatile("ldtilecfg %0" : : "m"(amx_configuration));
  }
  ~AmxRegisters() {
    if (--users_ == 0) asm volatile("tilerelease");
  }
  AmxRegisters(AmxRegisters const&) = delete;
  AmxRegisters& operator=(AmxRegisters const&) = delete;

 private:
  static inline thread_local int users_ = 0;
};

/// Tile for processors with AMX, which multiply 16 rows of 32 bfloat16 by as many columns in one instruction and sum in
/// float. C takes 2 x 2 tile registers. Rows after the valid ones have arbitrary values and are not stored.
struct AmxTile {
  using Narrow = AmxTile;
  using Low = AmxTile;
  using Factor = Bfloat16Pair;
  static constexpr Index rows = 32, columns = 32;
  /// Factors are padded with zeros to a multiple of these steps, which one instruction takes.
  static constexpr Index steps_at_once = 16;

  [[nodiscard]] static constexpr Index steps(Index depth) noexcept {
    return (depth + 2 * steps_at_once - 1) / (2 * steps_at_once) * steps_at_once;
  }

  [[gnu::optimize("O3", "fp-contract=fast"), gnu::target("avx512f,avx512vl,fma"), gnu::noinline]] static void multiply(
      GemmTile<float, Factor> const& tile) {
    typedef float Vector __attribute__((vector_size(64)));
    typedef float Unaligned __attribute__((vector_size(64), aligned(4), may_alias));
    for (Index i = 0; i < tile.rows; ++i)
      for (Index j = 0; j < tile.columns; j += 16) __builtin_prefetch(tile.c + i * tile.c_row + j, 1);
    alignas(64) float sums[rows * columns];
    if (tile.rows > 16)
      sum_products<true>(tile, sums);
    else
      sum_products<false>(tile, sums);
    if (tile.columns < columns) return store_narrow(tile, sums, columns);
    auto const alpha = tile.alpha, beta = tile.beta;
    Vector constant[2] = {};
    for (int v = 0; tile.bias && v < 2; ++v) constant[v] = *reinterpret_cast<Unaligned const*>(tile.bias + 16 * v);
    for (Index i = 0; i < tile.rows; ++i)
      for (int v = 0; v < 2; ++v) {
        Unaligned& to = *reinterpret_cast<Unaligned*>(tile.c + i * tile.c_row + 16 * v);
        Vector out = alpha * *reinterpret_cast<Vector const*>(sums + i * columns + 16 * v) + constant[v];
        if (beta != 0) out += beta * to;
        to = out;
      }
  }

  [[gnu::optimize("O3"), gnu::target("avx512f,avx512vl,fma"), gnu::noinline]] static void pack(Strided<float const> b,
                                                                                               Index depth, Index count,
                                                                                               Factor* out) {
    for (Index j = 0; j < count; j += columns, out += columns * steps(depth)) {
      pack_panel_of_pairs<columns>(b.at(0, j), depth, count - j < columns ? count - j : columns, out);
      for (auto at = (depth + 1) / 2 * columns; at < steps(depth) * columns; ++at) out[at] = 0;
    }
  }

  /// Packs rows contiguously, one after another, for any strides of A.
  [[gnu::optimize("O3"), gnu::target("avx512f,avx512vl,fma"), gnu::noinline]] static void pack_rows(
      Strided<float const> a, Index depth, Index count, Factor* out) {
    auto const all = steps(depth);
    if (a.column != 1) return pack_columns_as_rows({a.data, a.column, a.row}, depth, count, out, all);
    for (Index i = 0; i < count; ++i, out += all) {
      pair_adjacent(a.data + i * a.row, depth, out);
      for (auto p = (depth + 1) / 2; p < all; ++p) out[p] = 0;
    }
  }

 private:
  /// Computes sums [32, 32] = the products of all steps. For at most 16 rows, only the upper half.
  template <bool all>
  [[gnu::always_inline]] static inline void sum_products(GemmTile<float, Factor> const& tile, float* sums) {
    constexpr Index bytes = sizeof(Factor);
    auto const a_stride = tile.a_row * bytes, b_stride = tile.b_step * bytes;
    auto const *a = tile.a, *b = tile.b;
    auto prefetch = tile.prefetch ? *tile.prefetch : Prefetch{};
    asm volatile("tilezero %tmm0\n\ttilezero %tmm1\n\ttilezero %tmm2\n\ttilezero %tmm3");
    for (Index p = 0; p < tile.k; p += steps_at_once, a += steps_at_once, b += steps_at_once * tile.b_step) {
      prefetch.fetch();
      asm volatile(
          "tileloadd (%0,%1,1), %%tmm4\n\t"
          "tileloadd (%2,%3,1), %%tmm6\n\t"
          "tdpbf16ps %%tmm6, %%tmm4, %%tmm0\n\t"
          "tileloadd 64(%2,%3,1), %%tmm7\n\t"
          "tdpbf16ps %%tmm7, %%tmm4, %%tmm1"
          :
          : "r"(a), "r"(a_stride), "r"(b), "r"(b_stride)
          : "memory");
      if constexpr (all)
        asm volatile(
            "tileloadd (%0,%1,1), %%tmm5\n\t"
            "tdpbf16ps %%tmm6, %%tmm5, %%tmm2\n\t"
            "tdpbf16ps %%tmm7, %%tmm5, %%tmm3"
            :
            : "r"(a + 16 * tile.a_row), "r"(a_stride)
            : "memory");
    }
    if (tile.prefetch) *tile.prefetch = prefetch;
    constexpr Index stride = columns * sizeof(float);
    asm volatile(
        "tilestored %%tmm0, (%0,%1,1)\n\t"
        "tilestored %%tmm1, 64(%0,%1,1)"
        :
        : "r"(sums), "r"(stride)
        : "memory");
    if constexpr (all)
      asm volatile(
          "tilestored %%tmm2, (%0,%1,1)\n\t"
          "tilestored %%tmm3, 64(%0,%1,1)"
          :
          : "r"(sums + 16 * columns), "r"(stride)
          : "memory");
  }
};

}}}  // namespace lockstep::kernel::detail

#endif
