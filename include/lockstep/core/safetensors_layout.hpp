// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/json.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Largest header that the reference implementation of safetensors reads, in bytes.
inline constexpr std::size_t max_safetensors_header = 100'000'000;

/// Checks that the tensors of a safetensors file fill its data without overlap and without gaps, as the format demands.
/// Two tensors with common bytes, or bytes of no tensor, may hide what another reader sees.
/// @param header the file's header   @param bytes number of bytes after the header
/// @throws DataError with the path and the tensors' names
/// @source safetensors 0.3, "Format"
void check_safetensors_layout(std::string const& path, json::Value const& header, std::uint64_t bytes);

}}  // namespace lockstep

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/safetensors_layout.ipp>
#endif
