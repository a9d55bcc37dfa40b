// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// SHA-256 of a stream of bytes, given in any number of parts.
/// @source FIPS 180-4
class Sha256 {
 public:
  using Digest = std::array<std::uint8_t, 32>;

  void update(std::span<std::byte const> bytes) noexcept {
    length_ += bytes.size();
    if (used_ > 0) {
      auto const part = bytes.first(std::min(bytes.size(), block_.size() - used_));
      fill(part);
      bytes = bytes.subspan(part.size());
      if (used_ < block_.size()) return;
      compress(block_.data());
      used_ = 0;
    }
    for (; bytes.size() >= block_.size(); bytes = bytes.subspan(block_.size())) compress(bytes.data());
    fill(bytes);
  }

  /// Returns the digest of all bytes so far; more may follow.
  [[nodiscard]] Digest digest() const noexcept {
    auto end = *this;
    end.pad();
    Digest out;
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<std::uint8_t>(end.state_[i / 4] >> (24 - 8 * (i % 4)));
    return out;
  }

 private:
  using Words = std::array<std::uint32_t, 64>;
  static constexpr Words round_constants{
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
      0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
      0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
      0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
      0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
      0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
      0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
      0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

  void fill(std::span<std::byte const> bytes) noexcept {
    std::copy(bytes.begin(), bytes.end(), block_.begin() + static_cast<std::ptrdiff_t>(used_));
    used_ += bytes.size();
  }

  void pad() noexcept {
    std::uint64_t const bits = length_ * 8;
    block_[used_++] = std::byte{0x80};
    if (used_ > block_.size() - 8) {
      std::fill(block_.begin() + static_cast<std::ptrdiff_t>(used_), block_.end(), std::byte{0});
      compress(block_.data());
      used_ = 0;
    }
    std::fill(block_.begin() + static_cast<std::ptrdiff_t>(used_), block_.end(), std::byte{0});
    for (std::size_t i = 0; i < 8; ++i) block_[block_.size() - 1 - i] = static_cast<std::byte>(bits >> (8 * i));
    compress(block_.data());
  }

  void compress(std::byte const* bytes) noexcept {
    Words w;
    for (std::size_t i = 0; i < 16; ++i) {
      w[i] = std::to_integer<std::uint32_t>(bytes[4 * i]) << 24 |
             std::to_integer<std::uint32_t>(bytes[4 * i + 1]) << 16 |
             std::to_integer<std::uint32_t>(bytes[4 * i + 2]) << 8 | std::to_integer<std::uint32_t>(bytes[4 * i + 3]);
    }
    for (std::size_t i = 16; i < 64; ++i) {
      auto const s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
      auto const s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (std::size_t i = 0; i < 64; ++i) {
      auto const s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      auto const t1 = h + s1 + ((e & f) ^ (~e & g)) + round_constants[i] + w[i];
      auto const s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      auto const t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g;
      g = f;
      f = e;
      e = d + t1;
      d = c;
      c = b;
      b = a;
      a = t1 + t2;
    }
    std::array const added{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < state_.size(); ++i) state_[i] += added[i];
  }

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> block_{};
  std::size_t used_ = 0;      // bytes of the block
  std::uint64_t length_ = 0;  // bytes so far
};

/// Returns two lowercase hexadecimal digits per byte.
[[nodiscard]] inline std::string hex(std::span<std::uint8_t const> bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out;
  out.reserve(2 * bytes.size());
  for (auto byte : bytes) {
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

}}  // namespace lockstep
