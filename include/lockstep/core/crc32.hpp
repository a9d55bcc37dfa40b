// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// CRC-32 of bytes in pieces, the checksum of zip, gzip and PNG.
/// @source ISO 3309, in the reflected form of the polynomial 0x04c11db7; eight tables (Kounavis and Berry 2005)
class Crc32 {
 public:
  /// Adds the next bytes; how they are divided does not matter.
  void add(std::span<std::byte const> bytes) noexcept;
  /// Returns the CRC-32 of all bytes so far.
  [[nodiscard]] std::uint32_t sum() const noexcept { return ~state_; }

 private:
  using Tables = std::array<std::array<std::uint32_t, 256>, 8>;
  static Tables const& tables() noexcept;

  std::uint32_t state_ = ~std::uint32_t{0};
};

}}  // namespace lockstep

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/crc32.ipp>
#endif
