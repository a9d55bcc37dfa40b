// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/crc32.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

LOCKSTEP_INLINE Crc32::Tables const& Crc32::tables() noexcept {
  static Tables const all = [] {
    Tables out{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      auto rest = byte;
      for (int bit = 0; bit < 8; ++bit) rest = rest >> 1 ^ ((rest & 1) != 0 ? 0xedb88320u : 0);
      out[0][byte] = rest;
    }
    for (std::size_t byte = 0; byte < 256; ++byte)
      for (std::size_t k = 1; k < out.size(); ++k)
        out[k][byte] = out[k - 1][byte] >> 8 ^ out[0][out[k - 1][byte] & 255];
    return out;
  }();
  return all;
}

LOCKSTEP_INLINE void Crc32::add(std::span<std::byte const> bytes) noexcept {
  auto const& table = tables();
  auto const* at = reinterpret_cast<unsigned char const*>(bytes.data());
  auto left = bytes.size();
  auto sum = state_;
  for (; left >= 8; left -= 8, at += 8) {
    std::uint32_t low = 0, high = 0;
    std::memcpy(&low, at, 4);  // little-endian, as all supported machines are
    std::memcpy(&high, at + 4, 4);
    low ^= sum;
    sum = table[7][low & 255] ^ table[6][low >> 8 & 255] ^ table[5][low >> 16 & 255] ^ table[4][low >> 24] ^
          table[3][high & 255] ^ table[2][high >> 8 & 255] ^ table[1][high >> 16 & 255] ^ table[0][high >> 24];
  }
  for (; left > 0; --left, ++at) sum = sum >> 8 ^ table[0][(sum ^ *at) & 255];
  state_ = sum;
}

}}  // namespace lockstep
