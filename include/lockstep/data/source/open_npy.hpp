// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>

#include <lockstep/data/source/detail/npy_header.hpp>
#include <lockstep/data/source/file_array.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Opens the array of a .npy file. Reads only the header.
/// @throws DataError if the file is damaged, or its element type is not a C++ number
/// @source NEP 1: the .npy format, versions 1 to 3
[[nodiscard]] inline FileArray open_npy(std::string const& path) {
  auto file = std::make_shared<detail::DataFile const>(path);
  auto const size = file->size();
  return detail::npy_at(std::move(file), 0, size, "the array");
}

}}}  // namespace lockstep::data
