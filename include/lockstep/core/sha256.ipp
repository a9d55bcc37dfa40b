// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/sha256.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

LOCKSTEP_INLINE void Sha256::update(std::span<std::byte const> bytes) noexcept {
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

LOCKSTEP_INLINE Sha256::Digest Sha256::digest() const noexcept {
  auto end = *this;
  end.pad();
  Digest out;
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<std::uint8_t>(end.state_[i / 4] >> (24 - 8 * (i % 4)));
  return out;
}

LOCKSTEP_INLINE void Sha256::fill(std::span<std::byte const> bytes) noexcept {
  std::copy(bytes.begin(), bytes.end(), block_.begin() + static_cast<std::ptrdiff_t>(used_));
  used_ += bytes.size();
}

LOCKSTEP_INLINE void Sha256::pad() noexcept {
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

LOCKSTEP_INLINE void Sha256::compress(std::byte const* bytes) noexcept {
  Words w;
  for (std::size_t i = 0; i < 16; ++i) {
    w[i] = std::to_integer<std::uint32_t>(bytes[4 * i]) << 24 | std::to_integer<std::uint32_t>(bytes[4 * i + 1]) << 16 |
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

LOCKSTEP_INLINE std::string hex(std::span<std::uint8_t const> bytes) {
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
