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
  std::uint64_t half[2];  ///< both halves
  /// Compares both halves.
  bool operator==(Checksum const&) const = default;
};

/// Returns 32 hexadecimal digits.
[[nodiscard]] std::string to_string(Checksum const& sum);

/// Checksum of bytes in pieces; every piece except the last must be a multiple of 32 bytes. The algorithm never
/// changes, so files may store it.
/// @source the steps of MurmurHash3 (Appleby), in four lanes
class RunningChecksum {
 public:
  /// Adds the next bytes; how they are divided does not matter.
  void add(std::span<std::byte const> bytes) noexcept;
  /// Returns the checksum of all bytes so far.
  [[nodiscard]] Checksum sum() const noexcept;

 private:
  std::uint64_t lanes_[4] = {1, 2, 3, 4};
  std::uint64_t size_ = 0;
};

/// Returns the checksum of bytes.
[[nodiscard]] Checksum checksum(std::span<std::byte const> bytes) noexcept;

}}  // namespace lockstep

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/checksum.ipp>
#endif
