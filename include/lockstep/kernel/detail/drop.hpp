// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include <lockstep/core/index.hpp>
#include <lockstep/kernel/dropout_mask.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {

/// words[2i], words[2i + 1] = the 128 bits of Philox(key)(position, first + i), for `Lanes` counters at once. The state is
/// kept in 64-bit lanes: then the products need no shuffling and every compiler vectorises the loop.
template <int Lanes>
inline void philox_lanes(std::uint64_t key, std::uint64_t position, std::uint64_t first, std::uint64_t* words) noexcept {
  constexpr std::uint64_t low = 0xffffffff;
  for (int lane = 0; lane < Lanes; ++lane) {
    std::uint64_t const counter = first + static_cast<std::uint64_t>(lane);
    std::uint64_t x0 = position & low, x1 = position >> 32, x2 = counter & low, x3 = counter >> 32;
    auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 10
#endif
    for (int round = 0; round < 10; ++round) {
      std::uint64_t const p0 = x0 * 0xD2511F53, p2 = x2 * 0xCD9E8D57;
      x0 = (p2 >> 32) ^ x1 ^ k0;
      x2 = (p0 >> 32) ^ x3 ^ k1;
      x1 = p2 & low;
      x3 = p0 & low;
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    words[2 * lane] = x0 | x1 << 32;
    words[2 * lane + 1] = x2 | x3 << 32;
  }
}

/// y[i] = x[i] * scale where the mask keeps element first + i of the sample at `position`, else 0; or y[i] += that.
/// x and y may be the same. To be called inside with_best_instructions.
template <class T>
inline void drop(DropoutMask mask, std::uint64_t position, std::uint64_t first, Index count, T const* x, T* y,
                 Write write = Write::overwrite) noexcept {
  static_assert(std::endian::native == std::endian::little, "Lockstep: half-words are read in memory order");
  constexpr Index elements_per_block = 8, most_blocks = 32, lanes = 8;
  std::uint16_t bits[elements_per_block * most_blocks];
  auto const scale = static_cast<T>(mask.scale());
  auto const dropped = static_cast<std::uint16_t>(mask.dropped);
  for (Index done = 0; done < count;) {
    auto const element = first + static_cast<std::uint64_t>(done);
    auto const skip = static_cast<Index>(element % elements_per_block);
    Index const here = std::min(count - done, elements_per_block * most_blocks - skip);
    Index const blocks = (skip + here + elements_per_block - 1) / elements_per_block;
    for (Index b = 0; b < blocks; b += lanes) {
      alignas(64) std::uint64_t words[2 * lanes];
      philox_lanes<lanes>(mask.key, position, element / elements_per_block + static_cast<std::uint64_t>(b), words);
      std::memcpy(bits + elements_per_block * b, words, sizeof words);
    }
    auto const* from = x + done;
    auto* to = y + done;
    if (write == Write::overwrite) {
      for (Index i = 0; i < here; ++i) to[i] = bits[skip + i] >= dropped ? from[i] * scale : T{0};
    } else {
      for (Index i = 0; i < here; ++i) to[i] += bits[skip + i] >= dropped ? from[i] * scale : T{0};
    }
    done += here;
  }
}

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
