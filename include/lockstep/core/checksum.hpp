// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include <lockstep/core/mix.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// A 128-bit checksum: always differs if a single 64-bit word differs, otherwise with high probability. Not
/// cryptographic.
struct Checksum {
  std::uint64_t half[2];
  bool operator==(Checksum const&) const = default;
};

/// Returns 32 hexadecimal digits.
[[nodiscard]] inline std::string to_string(Checksum const& sum) {
  return hexadecimal(sum.half[0]) + hexadecimal(sum.half[1]);
}

/// Checksum of bytes in pieces; every piece except the last must be a multiple of 32 bytes. The algorithm never
/// changes, so files may store it.
/// @source the steps of MurmurHash3 (Appleby), in four lanes
class RunningChecksum {
 public:
  void add(std::span<std::byte const> bytes) noexcept {
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
  [[nodiscard]] Checksum sum() const noexcept {
    Checksum sum{{size_, ~size_}};
    for (int k = 0; k < 4; ++k) {
      sum.half[0] = mix(sum.half[0] ^ lanes_[k]);
      sum.half[1] = mix(sum.half[1] ^ lanes_[3 - k]);
    }
    return sum;
  }

 private:
  std::uint64_t lanes_[4] = {1, 2, 3, 4};
  std::uint64_t size_ = 0;
};

[[nodiscard]] inline Checksum checksum(std::span<std::byte const> bytes) noexcept {
  RunningChecksum running;
  running.add(bytes);
  return running.sum();
}

}}  // namespace lockstep
