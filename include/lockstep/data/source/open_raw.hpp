// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/data/source/file_array.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Opens records of equal size in a file without a header: rows of `row_shape` numbers, after `offset` bytes, to the
/// end.
/// @throws DataError if the file does not hold a whole number of records
/// @throws ConfigError if an extent of `row_shape` is below 1, or the size of a record overflows
template <Number Value>
[[nodiscard]] FileArray open_raw(std::string const& path, std::vector<Index> row_shape, std::uint64_t offset = 0) {
  auto file = std::make_shared<detail::DataFile const>(path);
  auto bytes = static_cast<Index>(sizeof(Value));
  for (auto const extent : row_shape) {
    if (extent < 1 || __builtin_mul_overflow(bytes, extent, &bytes))
      throw ConfigError("open_raw: a record has the extent " + std::to_string(extent) +
                        "; extents are at least 1 and their product fits memory");
  }
  file->require_range(offset, 0, "the bytes before the records");
  auto const rest = file->size() - offset;
  if (rest % static_cast<std::uint64_t>(bytes) != 0) {
    file->fail("holds " + std::to_string(rest) + " bytes of records, not a multiple of the " + std::to_string(bytes) +
               " bytes of one; the file was cut off, or the shape or the offset is wrong");
  }
  row_shape.insert(row_shape.begin(), static_cast<Index>(rest / static_cast<std::uint64_t>(bytes)));
  return FileArray(std::move(file), NumberType::of<Value>(), std::move(row_shape), offset);
}

}}}  // namespace lockstep::data
