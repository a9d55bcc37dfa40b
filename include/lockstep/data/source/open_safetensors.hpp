// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/json.hpp>
#include <lockstep/core/nearest.hpp>
#include <lockstep/core/safetensors_layout.hpp>
#include <lockstep/data/source/file_array.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {
namespace detail {

/// Returns the number type of a safetensors dtype; its `bytes` is 0 if there is no such type.
NumberType safetensors_type(std::string_view name) noexcept;

}  // namespace detail

/// Opens one tensor of a safetensors file, by name; its first extent counts rows.
/// @throws DataError if the file is damaged, its tensors overlap or leave gaps, or it has no such tensor
/// @source safetensors 0.3: u64 length of a JSON header, the header, the tensors' bytes
[[nodiscard]] FileArray open_safetensors(std::string const& path, std::string_view name);

}}}  // namespace lockstep::data

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/source/open_safetensors.ipp>
#endif
