// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/data/detail/data_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

struct ZipEntry {
  std::string name;
  std::uint64_t header = 0, bytes = 0;
  bool is_encrypted = false, is_compressed = false;
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
std::vector<ZipEntry> read_zip_directory(DataFile const& file);

/// Returns the offset of a file's bytes. @throws DataError if it is compressed, encrypted or damaged
std::uint64_t zip_data_offset(DataFile const& file, ZipEntry const& entry);

}}}  // namespace lockstep::data::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/source/detail/zip_directory.ipp>
#endif
