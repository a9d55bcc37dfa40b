// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/lanes.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Philox for as many counters at once as a vector has 64-bit lanes. Each word of the state is in the low half of a
/// lane, so the products need no shuffles. The high halves are arbitrary.
template <std::size_t bytes, class Word = std::uint64_t>
struct PhiloxLanes {
  static constexpr int count = bytes / 8;
  typedef Word Words __attribute__((vector_size(bytes)));

  /// Computes x = (low half of x) * (low half of y). Uses the instruction itself with GCC, which would emulate a
  /// product of 64 bits.
  [[gnu::always_inline]] static void multiply(Words& x, Words const& y) noexcept {
#if defined(__x86_64__) && !defined(__clang__) && !defined(__CUDACC__)
#if !defined(__AVX__)
    // Among AVX instructions, the older form waits for the upper half of its register, which takes many times its own
    // time.
    if constexpr (bytes == 16) {
      __asm__("pmuludq %1, %0" : "+x"(x) : "x"(y));
      return;
    }
#endif
    __asm__("vpmuludq %1, %0, %0" : "+v"(x) : "v"(y));
#else
    x = (x & 0xffffffff) * (y & 0xffffffff);
#endif
  }

  template <int... lane>
  [[gnu::always_inline]] static void fill(std::uint64_t key, std::uint64_t position, std::uint64_t first,
                                          std::uint16_t* bits, std::integer_sequence<int, lane...>) noexcept {
    static_assert(std::endian::native == std::endian::little, "Lockstep: half-words are read in memory order");
    Words const m0 = Words{} + std::uint64_t{0xD2511F53}, m2 = Words{} + std::uint64_t{0xCD9E8D57};
    Words x0 = Words{} + position, x1 = x0 >> 32, x2 = Words{std::uint64_t{lane}...} + first, x3 = x2 >> 32;
    auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      multiply(x0, m0);
      multiply(x2, m2);
      Words const p0 = x0, p2 = x2;
      x0 = (p2 >> 32) ^ x1 ^ std::uint64_t{k0};
      x2 = (p0 >> 32) ^ x3 ^ std::uint64_t{k1};
      x1 = p2;
      x3 = p0;
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    // The first and the second 64 bits of each block.
    Words const firsts = (x0 & 0xffffffff) | x1 << 32, seconds = (x2 & 0xffffffff) | x3 << 32;
#if defined(LOCKSTEP_HAS_SHUFFLE)
    Words const blocks[] = {
        __builtin_shufflevector(firsts, seconds, (lane % 2 ? count + lane / 2 : lane / 2)...),
        __builtin_shufflevector(firsts, seconds, (count / 2 + (lane % 2 ? count + lane / 2 : lane / 2))...)};
#else
    std::uint64_t const blocks[][2] = {{firsts[lane], seconds[lane]}...};
#endif
    __builtin_memcpy(bits, blocks, sizeof blocks);
  }
};

template <std::size_t bytes>
[[gnu::always_inline]] inline void fill_philox(std::uint64_t key, std::uint64_t position, std::uint64_t first,
                                               Index blocks, std::uint16_t* bits) noexcept {
  for (Index b = 0; b < blocks; b += PhiloxLanes<bytes>::count)
    PhiloxLanes<bytes>::fill(key, position, first + static_cast<std::uint64_t>(b), bits + 8 * b,
                             std::make_integer_sequence<int, PhiloxLanes<bytes>::count>{});
}
// Separate from their callers: those loops have one body that is compiled for each set and cannot name instructions.
[[gnu::noinline]] inline void philox_baseline(std::uint64_t key, std::uint64_t position, std::uint64_t first,
                                              Index blocks, std::uint16_t* bits) noexcept {
  fill_philox<16>(key, position, first, blocks, bits);
}
#if LOCKSTEP_HAS_INSTRUCTION_SETS
[[gnu::noinline, gnu::target("avx2")]] inline void philox_avx2(std::uint64_t key, std::uint64_t position,
                                                               std::uint64_t first, Index blocks,
                                                               std::uint16_t* bits) noexcept {
  fill_philox<32>(key, position, first, blocks, bits);
}
[[gnu::noinline, gnu::target("avx512f,avx512vl")]] inline void philox_avx512(std::uint64_t key, std::uint64_t position,
                                                                             std::uint64_t first, Index blocks,
                                                                             std::uint16_t* bits) noexcept {
  fill_philox<64>(key, position, first, blocks, bits);
}
#endif

/// Sets bits[8i] to bits[8i + 7] to the half-words of Philox(key)(position, first + i) for i < blocks. Bits up to the
/// next multiple of 8 blocks are arbitrary.
inline void philox_bits(InstructionSet set, std::uint64_t key, std::uint64_t position, std::uint64_t first,
                        Index blocks, std::uint16_t* bits) noexcept {
#if LOCKSTEP_HAS_INSTRUCTION_SETS
  if (set == InstructionSet::avx512) return philox_avx512(key, position, first, blocks, bits);
  if (set == InstructionSet::avx2) return philox_avx2(key, position, first, blocks, bits);
#endif
  static_cast<void>(set);
  philox_baseline(key, position, first, blocks, bits);
}

}}}  // namespace lockstep::kernel::detail
