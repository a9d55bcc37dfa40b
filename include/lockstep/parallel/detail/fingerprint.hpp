// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
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
struct Fingerprint {
  std::uint64_t half[2];
  bool operator==(Fingerprint const&) const = default;
};

[[nodiscard]] inline Fingerprint fingerprint(std::span<std::byte const> bytes) noexcept {
  // Each lane is a bijection of every word it takes; there are four so that their chains overlap.
  std::uint64_t lanes[4] = {1, 2, 3, 4};
  auto const* from = bytes.data();
  for (auto left = bytes.size(); left > 0;) {
    auto const count = std::min(left, sizeof lanes);
    std::uint64_t words[4] = {};
    std::memcpy(words, from, count);
    for (int k = 0; k < 4; ++k) {
      // Scrambled first: else a high bit of one word would be told from a low bit of the next one by nothing.
      auto const word = std::rotl(words[k] * 0x87c37b91114253d5u, 31) * 0x4cf5ad432745937fu;
      lanes[k] = std::rotl(lanes[k] ^ word, 27) * 5 + 0x52dce729u;
    }
    from += count;
    left -= count;
  }
  Fingerprint result{{bytes.size(), ~bytes.size()}};
  for (int k = 0; k < 4; ++k) {
    result.half[0] = mix(result.half[0] ^ lanes[k]);
    result.half[1] = mix(result.half[1] ^ lanes[3 - k]);
  }
  return result;
}

}  // namespace lockstep::inline LOCKSTEP_ABI::parallel::detail
