// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <lockstep/core/out_of_memory.hpp>
#include <lockstep/data/source/file_array.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Returns an array in memory, whose bytes `fill` writes, row by row. It is freed with the last copy.
/// @param path names the array in messages, as the file that its numbers are from
/// @param remedy for too little memory, such as "convert the file"
/// @throws OutOfMemoryError if the array needs more memory than is free, DataError if an extent is negative
[[nodiscard]] FileArray in_memory_array(std::string const& path, NumberType type, std::vector<Index> const& shape,
                                        std::function<void(std::span<std::byte>)> const& fill,
                                        std::string const& remedy, FileArray::Order order = FileArray::Order::native);

}}}  // namespace lockstep::data

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/source/in_memory_array.ipp>
#endif
