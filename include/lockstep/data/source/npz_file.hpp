// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/nearest.hpp>
#include <lockstep/data/source/detail/npy_header.hpp>
#include <lockstep/data/source/detail/zip_directory.hpp>
#include <lockstep/data/source/file_array.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Whether the bytes of an array are compared with the checksum (CRC-32) of the archive when the array is opened.
enum class NpzChecksums {
  verify,  ///< each array is read once, as numpy does (the default)
  ignore,  ///< rows are read unchecked: for archives much larger than what is read of them
};

/// A .npz archive with arrays by name. Opens the file and reads its directory once for all arrays. Closes the file when
/// this object and all of its arrays are destroyed.
/// Other files of the archive do not matter, whatever their names and compression.
/// @throws DataError if the file is damaged
/// @source PKWARE APPNOTE 6.3, with Zip64
class NpzFile {
 public:
  /// @param checksums whether `array` compares the CRC-32 of an array
  explicit NpzFile(std::string const& path, NpzChecksums checksums = NpzChecksums::verify)
      : file_(std::make_shared<detail::DataFile const>(path)),
        directory_(detail::read_zip_directory(*file_)),
        checksums_(checksums) {}

  /// Returns the path of the archive.
  [[nodiscard]] std::string const& path() const noexcept { return file_->path(); }
  /// Returns the names of the arrays, in the order of the archive.
  [[nodiscard]] std::vector<std::string> names() const;
  /// Returns whether the archive has an array of this name.
  [[nodiscard]] bool has(std::string_view name) const { return find(name) != directory_.entries.end(); }
  /// Returns an array whose rows are read from the archive in place.
  /// @throws DataError if the archive has no such array or two of them, or the array is damaged, encrypted or
  /// compressed (np.savez does not compress)
  [[nodiscard]] FileArray array(std::string_view name) const;

 private:
  [[nodiscard]] std::vector<detail::ZipEntry>::const_iterator find(std::string_view name) const;

  std::shared_ptr<detail::DataFile const> file_;
  detail::ZipDirectory directory_;
  NpzChecksums checksums_;
};

}}}  // namespace lockstep::data

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/source/npz_file.ipp>
#endif
