// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <lockstep/core/sha256.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Returns the HMAC of a message with SHA-256, which only an owner of the key can compute.
/// @source RFC 2104, tested with RFC 4231
[[nodiscard]] Sha256::Digest hmac_sha256(std::span<std::byte const> key, std::span<std::byte const> message) noexcept;

/// Returns whether two digests are equal. Takes an equal time wherever they differ, so that the time reveals nothing.
[[nodiscard]] bool equal_in_constant_time(Sha256::Digest const& a, Sha256::Digest const& b) noexcept;

}}  // namespace lockstep

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/hmac_sha256.ipp>
#endif
