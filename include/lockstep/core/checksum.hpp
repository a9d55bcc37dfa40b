// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include <lockstep/core/mix.hpp>

namespace lockstep::inline LOCKSTEP_ABI {

/// 128 bits that tell bytes apart: always where a single word of 64 bits differs, else but for chance. Not for what
/// somebody makes on purpose.
struct Checksum {
  std::uint64_t half[2];
  bool operator==(Checksum const&) const = default;
};

/// In 32 hexadecimal digits.
[[nodiscard]] inline std::string to_string(Checksum const& sum) {
  std::string out;
  for (auto const half : sum.half)
    for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[half >> shift & 15];
  return out;
}

/// The checksum of a stream of bytes, given in any number of parts. The same for ever, so that files may keep it.
/// @source the steps of MurmurHash3 (Appleby), in four lanes
class Checksummer {
 public:
  void update(std::span<std::byte const> bytes) noexcept {
    length_ += bytes.size();
    if (used_ > 0) {
      auto const part = bytes.first(std::min(bytes.size(), block_.size() - used_));
      keep(part);
      if (used_ < block_.size()) return;
      take(lanes_, block_.data());
      bytes = bytes.subspan(part.size());
      used_ = 0;
    }
    auto lanes = lanes_;  // in registers
    for (; bytes.size() >= block_.size(); bytes = bytes.subspan(block_.size())) take(lanes, bytes.data());
    lanes_ = lanes;
    keep(bytes);
  }

  /// That of everything so far; more may follow.
  [[nodiscard]] Checksum value() const noexcept {
    auto lanes = lanes_;
    if (used_ > 0) {
      auto last = block_;
      std::fill(last.begin() + static_cast<std::ptrdiff_t>(used_), last.end(), std::byte{});
      take(lanes, last.data());
    }
    Checksum sum{{length_, ~length_}};
    for (std::size_t k = 0; k < lanes.size(); ++k) {
      sum.half[0] = mix(sum.half[0] ^ lanes[k]);
      sum.half[1] = mix(sum.half[1] ^ lanes[lanes.size() - 1 - k]);
    }
    return sum;
  }

 private:
  /// Each lane is a bijection of every word it takes; there are four so that their chains overlap.
  using Lanes = std::array<std::uint64_t, 4>;

  static void take(Lanes& lanes, std::byte const* block) noexcept {
    Lanes words;
    std::memcpy(words.data(), block, sizeof words);
    for (std::size_t k = 0; k < lanes.size(); ++k) {
      // Scrambled first: else a high bit of one word would be told from a low bit of the next one by nothing.
      auto const word = std::rotl(words[k] * 0x87c37b91114253d5u, 31) * 0x4cf5ad432745937fu;
      lanes[k] = std::rotl(lanes[k] ^ word, 27) * 5 + 0x52dce729u;
    }
  }
  void keep(std::span<std::byte const> bytes) noexcept {
    std::copy(bytes.begin(), bytes.end(), block_.begin() + static_cast<std::ptrdiff_t>(used_));
    used_ += bytes.size();
  }

  Lanes lanes_{1, 2, 3, 4};
  std::array<std::byte, sizeof(Lanes)> block_{};  // what did not fill one
  std::size_t used_ = 0;
  std::uint64_t length_ = 0;
};

[[nodiscard]] inline Checksum checksum(std::span<std::byte const> bytes) noexcept {
  Checksummer all;
  all.update(bytes);
  return all.value();
}

}  // namespace lockstep::inline LOCKSTEP_ABI
