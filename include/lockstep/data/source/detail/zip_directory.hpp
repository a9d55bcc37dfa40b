// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/core/crc32.hpp>
#include <lockstep/data/detail/data_file.hpp>
#include <lockstep/data/source/detail/forward_reader.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

struct ZipEntry {
  std::string name;
  std::uint64_t header = 0, bytes = 0;
  std::uint32_t crc = 0;  ///< CRC-32 of the bytes
  bool is_encrypted = false, is_compressed = false;
};

/// The files of an archive, and the offset of its directory, before which all of their bytes are.
struct ZipDirectory {
  std::vector<ZipEntry> entries;
  std::uint64_t begin = 0;
};

/// Returns a little-endian number in a text. @pre the number is inside the text
template <class Value>
Value number_at(std::string_view text, std::size_t at) {
  Value out{};
  std::memcpy(&out, text.data() + at, sizeof(Value));
  return out;
}

/// Reads the 64-bit values of a directory entry whose 32-bit values say that they overflow.
void read_zip64(DataFile const& file, std::string_view extra, std::uint64_t& stored, std::uint64_t& size,
                std::uint64_t& header);

/// Returns the files of an archive, also those that are compressed or encrypted. @throws DataError if it is damaged
ZipDirectory read_zip_directory(DataFile const& file);

/// Returns the offset of a file's bytes.
/// @throws DataError if it is compressed, encrypted or damaged, or shares bytes with another file or the directory
std::uint64_t zip_data_offset(DataFile const& file, ZipDirectory const& directory, ZipEntry const& entry);

/// Reads the bytes of a file, once, and compares their CRC-32.
/// @throws DataError if it differs
void check_zip_crc(DataFile const& file, ZipEntry const& entry, std::uint64_t offset);

}}}  // namespace lockstep::data::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/source/detail/zip_directory.ipp>
#endif
