// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <lockstep/core/error.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

namespace detail {
inline constexpr std::string_view base64_digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
}  // namespace detail

/// Returns bytes as ASCII text, 4 characters for each 3 bytes, padded with '='.   @source RFC 4648, section 4
[[nodiscard]] std::string to_base64(std::string_view bytes);

/// Decodes a text of `to_base64`.
/// @throws DataError for any other text, such as one with line breaks; names the place of the first invalid character
[[nodiscard]] std::string from_base64(std::string_view text);

}}  // namespace lockstep

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/base64.ipp>
#endif
