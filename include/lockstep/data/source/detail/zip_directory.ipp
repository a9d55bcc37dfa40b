// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/source/detail/zip_directory.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

LOCKSTEP_INLINE void read_zip64(DataFile const& file, std::string_view extra, std::uint64_t& stored,
                                std::uint64_t& size, std::uint64_t& header) {
  constexpr std::uint64_t none = 0xffffffff;
  while (extra.size() >= 4) {
    auto const length = number_at<std::uint16_t>(extra, 2);
    if (length > extra.size() - 4) file.fail("cannot be read as a zip archive: a directory entry is damaged");
    if (number_at<std::uint16_t>(extra, 0) == 1) {
      auto part = extra.substr(4, length);
      for (auto* value : {&size, &stored, &header}) {  // in this order, only values that did not fit
        if (*value != none || part.size() < 8) continue;
        *value = number_at<std::uint64_t>(part, 0);
        part.remove_prefix(8);
      }
    }
    extra.remove_prefix(std::size_t{4} + length);
  }
}

LOCKSTEP_INLINE std::vector<ZipEntry> read_zip_directory(DataFile const& file) {
  std::string text;
  auto end = std::string::npos;
  for (std::uint64_t const limit : {22U + 1024, 22U + 65535}) {  // the end record, with no comment or the longest
    auto const tail = std::min<std::uint64_t>(file.size(), limit);
    text = file.read_text(file.size() - tail, tail, "the end of the archive");
    end = text.rfind("PK\x05\x06");
    if ((end != std::string::npos && end >= 20) || tail == file.size()) break;  // a Zip64 locator has 20 bytes
  }
  if (end == std::string::npos || text.size() - end < 22)
    file.fail("is not a zip archive, or its end is missing; it was cut off, write it again");
  std::uint64_t count = number_at<std::uint16_t>(text, end + 10), bytes = number_at<std::uint32_t>(text, end + 12),
                begin = number_at<std::uint32_t>(text, end + 16);
  if (end >= 20 && text.compare(end - 20, 4, "PK\x06\x07") == 0) {
    auto const at = number_at<std::uint64_t>(text, end - 12);
    auto const record = file.read_text(at, 56, "the Zip64 end record");
    if (!record.starts_with("PK\x06\x06"))
      file.fail("cannot be read as a zip archive: its Zip64 end record is damaged");
    count = number_at<std::uint64_t>(record, 32);
    bytes = number_at<std::uint64_t>(record, 40);
    begin = number_at<std::uint64_t>(record, 48);
  }
  auto const directory = file.read_text(begin, bytes, "the directory of the archive");
  std::string_view rest = directory;
  std::vector<ZipEntry> out;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (rest.size() < 46 || !rest.starts_with("PK\x01\x02"))
      file.fail("cannot be read as a zip archive: entry " + std::to_string(i) + " of its directory is damaged");
    auto const name_length = number_at<std::uint16_t>(rest, 28), extra_length = number_at<std::uint16_t>(rest, 30);
    auto const length = std::size_t{46} + name_length + extra_length + number_at<std::uint16_t>(rest, 32);
    if (rest.size() < length)
      file.fail("cannot be read as a zip archive: entry " + std::to_string(i) + " of its directory is cut off");
    std::uint64_t stored = number_at<std::uint32_t>(rest, 20), size = number_at<std::uint32_t>(rest, 24),
                  header = number_at<std::uint32_t>(rest, 42);
    read_zip64(file, rest.substr(std::size_t{46} + name_length, extra_length), stored, size, header);
    bool const is_encrypted = (number_at<std::uint16_t>(rest, 8) & 1) != 0;
    bool const is_compressed = number_at<std::uint16_t>(rest, 10) != 0 || stored != size;
    out.push_back({std::string(rest.substr(46, name_length)), header, size, is_encrypted, is_compressed});
    rest.remove_prefix(length);
  }
  return out;
}

LOCKSTEP_INLINE std::uint64_t zip_data_offset(DataFile const& file, ZipEntry const& entry) {
  if (entry.is_encrypted) file.fail("\"" + entry.name + "\" is encrypted");
  if (entry.is_compressed)
    file.fail("\"" + entry.name + "\" is compressed, and rows cannot be read from it; write it with np.savez");
  auto const header = file.read_text(entry.header, 30, "the header of an archived file");
  if (!header.starts_with("PK\x03\x04")) file.fail("\"" + entry.name + "\" has a damaged header");
  auto const offset = entry.header + 30 + number_at<std::uint16_t>(header, 26) + number_at<std::uint16_t>(header, 28);
  file.require_range(offset, entry.bytes, "\"" + entry.name + "\"");
  return offset;
}

}}}  // namespace lockstep::data::detail
