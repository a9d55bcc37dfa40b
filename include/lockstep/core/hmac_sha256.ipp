// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/core/hmac_sha256.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

LOCKSTEP_INLINE Sha256::Digest hmac_sha256(std::span<std::byte const> key,
                                           std::span<std::byte const> message) noexcept {
  std::array<std::byte, 64> block{};  // SHA-256 has blocks of 64 bytes
  if (key.size() <= block.size()) {
    std::copy(key.begin(), key.end(), block.begin());
  } else {
    Sha256 hash;
    hash.update(key);
    auto const digest = hash.digest();
    std::copy_n(std::as_bytes(std::span(digest)).begin(), digest.size(), block.begin());
  }
  auto const hash_of = [&block](std::byte pad, std::span<std::byte const> bytes) {
    auto padded = block;
    for (auto& byte : padded) byte ^= pad;
    Sha256 hash;
    hash.update(padded);
    hash.update(bytes);
    return hash.digest();
  };
  auto const inner = hash_of(std::byte{0x36}, message);
  return hash_of(std::byte{0x5c}, std::as_bytes(std::span(inner)));
}

LOCKSTEP_INLINE bool equal_in_constant_time(Sha256::Digest const& a, Sha256::Digest const& b) noexcept {
  std::uint8_t volatile difference = 0;  // volatile: the compiler may not stop at the first difference
  for (std::size_t i = 0; i < a.size(); ++i) difference = static_cast<std::uint8_t>(difference | (a[i] ^ b[i]));
  return difference == 0;
}

}}  // namespace lockstep
