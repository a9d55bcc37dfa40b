// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <lockstep/core/index.hpp>
#include <lockstep/kernel/detail/lanes.hpp>
#include <lockstep/kernel/dropout_mask.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {

/// bits[8i] to bits[8i + 7] = the half-words of Philox(key)(position, first + i), for 8 counters at once. The words of
/// the state stand in 64-bit lanes: the products then need no shuffling.
[[gnu::always_inline]] inline void philox_lanes(std::uint64_t key, std::uint64_t position, std::uint64_t first,
                                                std::uint16_t* bits) noexcept {
  static_assert(std::endian::native == std::endian::little, "Lockstep: half-words are read in memory order");
  using Words = Lanes<std::uint64_t>;
  constexpr std::uint64_t low = 0xffffffff;
  Words const counter = Words{0, 1, 2, 3, 4, 5, 6, 7} + first;
  Words x0 = Words{} + (position & low), x1 = Words{} + (position >> 32), x2 = counter & low, x3 = counter >> 32;
  auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    Words const p0 = x0 * std::uint64_t{0xD2511F53}, p2 = x2 * std::uint64_t{0xCD9E8D57};
    x0 = (p2 >> 32) ^ x1 ^ std::uint64_t{k0};
    x2 = (p0 >> 32) ^ x3 ^ std::uint64_t{k1};
    x1 = p2 & low;
    x3 = p0 & low;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  Words const firsts = x0 | x1 << 32, seconds = x2 | x3 << 32;
#if defined(LOCKSTEP_HAS_SHUFFLE)
  Words const halves[] = {__builtin_shufflevector(firsts, seconds, 0, 8, 1, 9, 2, 10, 3, 11),
                          __builtin_shufflevector(firsts, seconds, 4, 12, 5, 13, 6, 14, 7, 15)};
  std::memcpy(bits, halves, sizeof halves);
#else
  std::uint64_t words[16];
  for (std::size_t lane = 0; lane < 8; ++lane) {
    words[2 * lane] = firsts[lane];
    words[2 * lane + 1] = seconds[lane];
  }
  std::memcpy(bits, words, sizeof words);
#endif
}
#undef LOCKSTEP_HAS_SHUFFLE

/// Calls f(done, here, bits) for consecutive parts of `count` elements from element `first` on of the sample at
/// `position`: element done + i takes bits[i], i < here. To be called inside with_best_instructions.
template <class F>
[[gnu::always_inline]] inline void for_dropout_bits(DropoutMask mask, std::uint64_t position, std::uint64_t first,
                                                    Index count, F const& f) noexcept {
  constexpr Index elements_per_block = 8, most_blocks = 32, lanes = 8;
  std::uint16_t bits[elements_per_block * most_blocks];
  for (Index done = 0; done < count;) {
    auto const element = first + static_cast<std::uint64_t>(done);
    auto const skip = static_cast<Index>(element % elements_per_block);
    Index const here = std::min(count - done, elements_per_block * most_blocks - skip);
    Index const blocks = (skip + here + elements_per_block - 1) / elements_per_block;
    for (Index b = 0; b < blocks; b += lanes)
      philox_lanes(mask.key, position, element / elements_per_block + static_cast<std::uint64_t>(b),
                   bits + elements_per_block * b);
    f(done, here, static_cast<std::uint16_t const*>(bits + skip));
    done += here;
  }
}

/// y[i] = x[i] * scale where the mask keeps element first + i of the sample at `position`, else 0; or y[i] += that.
/// x and y may be the same. To be called inside with_best_instructions.
template <class T>
[[gnu::always_inline]] inline void drop(DropoutMask mask, std::uint64_t position, std::uint64_t first, Index count,
                                        T const* x, T* y, Write write = Write::overwrite) noexcept {
  auto const scale = static_cast<T>(mask.scale());
  auto const dropped = static_cast<std::uint16_t>(mask.dropped);
  for_dropout_bits(mask, position, first, count, [=](Index done, Index here, std::uint16_t const* bits) {
    auto const* const from = x + done;
    auto* const to = y + done;
    if (write == Write::overwrite) {
      for (Index i = 0; i < here; ++i) to[i] = bits[i] >= dropped ? from[i] * scale : T{0};
    } else {
      for (Index i = 0; i < here; ++i) to[i] += bits[i] >= dropped ? from[i] * scale : T{0};
    }
  });
}

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
