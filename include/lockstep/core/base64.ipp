// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/base64.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

LOCKSTEP_INLINE std::string to_base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    auto const part = bytes.substr(at, 3);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i)
      bits = bits << 8 | (i < part.size() ? static_cast<unsigned char>(part[i]) : std::uint32_t{0});
    for (std::size_t i = 0; i < 4; ++i)
      out += i <= part.size() ? detail::base64_digits[bits >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}

LOCKSTEP_INLINE std::string from_base64(std::string_view text) {
  auto const refuse = [](std::size_t at) {
    throw DataError("character " + std::to_string(at) +
                    " of a base64 string is invalid there; the string was changed after it was written");
  };
  if (text.size() % 4 != 0) refuse(text.size());
  std::size_t const padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  for (std::size_t at = 0; at < text.size(); at += 4) {
    std::uint32_t bits = 0;
    for (std::size_t i = at; i < at + 4; ++i) {
      bool const padded = i >= text.size() - padding;
      auto const digit = padded ? 0 : detail::base64_digits.find(text[i]);
      if (digit == std::string_view::npos) refuse(i);
      bits = bits << 6 | static_cast<std::uint32_t>(digit);
    }
    for (int shift = 16; shift >= 0; shift -= 8) out += static_cast<char>(static_cast<unsigned char>(bits >> shift));
  }
  out.resize(out.size() - padding);
  if (!text.empty() && to_base64(std::string_view(out).substr(out.size() / 3 * 3)) !=
                           (padding == 0 ? std::string_view() : text.substr(text.size() - 4)))
    refuse(text.size() - padding - 1);  // bits in addition to those of the last byte
  return out;
}

}}  // namespace lockstep
