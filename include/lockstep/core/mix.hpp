// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Scrambles 64 bits, so that adjacent values become unrelated (a bijection).
/// @source the finalizer of SplitMix64 (Steele, Lea, Flood 2014)
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Combines several values into one key. The order counts: (1, 2) and (2, 1) give different keys.
template <class... Rest>
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t first, std::uint64_t second, Rest... rest) noexcept {
  return mix(mix(first) ^ second, static_cast<std::uint64_t>(rest)...);
}

/// Computes a key from a name.
/// @source FNV-1a, then scrambled
[[nodiscard]] constexpr std::uint64_t mix(std::string_view name) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return mix(hash);
}

/// Returns the key as 16 lowercase hexadecimal digits.
[[nodiscard]] std::string hexadecimal(std::uint64_t key);

}}  // namespace lockstep

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/mix.ipp>
#endif
