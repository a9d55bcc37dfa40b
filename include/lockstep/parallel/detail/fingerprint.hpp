// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <lockstep/core/mix.hpp>

namespace lockstep::inline LOCKSTEP_ABI::parallel::detail {

/// 128 bits that tell numbers apart by their bits: always where a single word differs, else but for chance. Not for
/// what somebody makes on purpose.
/// @source the steps of MurmurHash3 (Appleby), in four lanes
using Fingerprint = std::array<std::uint64_t, 2>;

[[nodiscard]] inline Fingerprint fingerprint(std::span<std::byte const> bytes) noexcept {
  // Each lane is a bijection of every word it takes; there are four so that their chains overlap.
  std::array<std::uint64_t, 4> lanes{1, 2, 3, 4};
  auto const take = [&](std::byte const* from, std::size_t count) {
    std::array<std::uint64_t, 4> words{};
    std::memcpy(words.data(), from, count);
    for (std::size_t k = 0; k < 4; ++k) {
      // Scrambled first: else a high bit of one word would be told from a low bit of the next one by nothing.
      auto const word = std::rotl(words[k] * 0x87c37b91114253d5u, 31) * 0x4cf5ad432745937fu;
      lanes[k] = std::rotl(lanes[k] ^ word, 27) * 5 + 0x52dce729u;
    }
  };
  constexpr std::size_t block = sizeof lanes;
  std::size_t at = 0;
  for (; at + block <= bytes.size(); at += block) take(bytes.data() + at, block);
  if (at < bytes.size()) take(bytes.data() + at, bytes.size() - at);
  auto const [a, b, c, d] = lanes;
  return {mix(bytes.size(), a, b, c, d), mix(~bytes.size(), d, c, b, a)};
}

}  // namespace lockstep::inline LOCKSTEP_ABI::parallel::detail
