// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include <lockstep/data/source/file_array.hpp>
#include <lockstep/data/source/npz_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Opens one array of a .npz file, by name; its rows are read from the archive in place. For several arrays of one
/// file, NpzFile reads the directory once.
/// @throws DataError if the file is damaged or has no such array, or the array is compressed (np.savez does not
/// compress)
[[nodiscard]] inline FileArray open_npz(std::string const& path, std::string_view name,
                                        NpzChecksums checksums = NpzChecksums::verify) {
  return NpzFile(path, checksums).array(name);
}

}}}  // namespace lockstep::data
