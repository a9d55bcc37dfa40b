// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/checksum.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

LOCKSTEP_COLD_INLINE std::string to_string(Checksum const& sum) {
  return hexadecimal(sum.half[0]) + hexadecimal(sum.half[1]);
}

LOCKSTEP_INLINE void RunningChecksum::add(std::span<std::byte const> bytes) noexcept {
  // Each lane is a bijection of every word it takes. Four lanes overlap their chains.
  std::uint64_t lanes[4] = {lanes_[0], lanes_[1], lanes_[2], lanes_[3]};
  auto const* from = bytes.data();
  for (auto left = bytes.size(); left > 0;) {
    auto const count = std::min(left, sizeof lanes);
    std::uint64_t words[4] = {};
    std::memcpy(words, from, count);
    for (int k = 0; k < 4; ++k) {
      // Scrambled first; otherwise a high bit of one word could cancel a low bit of the next one.
      auto const word = std::rotl(words[k] * 0x87c37b91114253d5u, 31) * 0x4cf5ad432745937fu;
      lanes[k] = std::rotl(lanes[k] ^ word, 27) * 5 + 0x52dce729u;
    }
    from += count;
    left -= count;
  }
  std::copy(lanes, lanes + 4, lanes_);
  size_ += bytes.size();
}

LOCKSTEP_INLINE Checksum RunningChecksum::sum() const noexcept {
  Checksum sum{{size_, ~size_}};
  for (int k = 0; k < 4; ++k) {
    sum.half[0] = mix(sum.half[0] ^ lanes_[k]);
    sum.half[1] = mix(sum.half[1] ^ lanes_[3 - k]);
  }
  return sum;
}

LOCKSTEP_INLINE Checksum checksum(std::span<std::byte const> bytes) noexcept {
  RunningChecksum running;
  running.add(bytes);
  return running.sum();
}

}}  // namespace lockstep
