// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include <lockstep/data/source/file_array.hpp>
#include <lockstep/data/source/npz_file.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data {

/// One array of a .npz file, by name; rows are read from the archive where they lie. For several arrays of one file,
/// NpzFile reads the directory once.
/// @throws DataError when the file is damaged, has no such array, or the array is compressed (np.savez stores)
[[nodiscard]] inline FileArray open_npz(std::string const& path, std::string_view name) {
  return NpzFile(path).array(name);
}

}  // namespace lockstep::inline LOCKSTEP_ABI::data
