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

LOCKSTEP_INLINE ZipDirectory read_zip_directory(DataFile const& file) {
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
  ForwardReader directory(file, begin, bytes, "the directory of the archive");
  ZipDirectory out{{}, begin};
  constexpr std::size_t fixed = 46;
  for (std::uint64_t i = 0; i < count; ++i) {
    auto rest = directory.peek(fixed);
    if (rest.size() < fixed || !rest.starts_with("PK\x01\x02"))
      file.fail("cannot be read as a zip archive: entry " + std::to_string(i) + " of its directory is damaged");
    auto const name_length = number_at<std::uint16_t>(rest, 28), extra_length = number_at<std::uint16_t>(rest, 30);
    auto const length = fixed + name_length + extra_length + number_at<std::uint16_t>(rest, 32);
    rest = directory.peek(length);
    if (rest.size() < length)
      file.fail("cannot be read as a zip archive: entry " + std::to_string(i) + " of its directory is cut off");
    std::uint64_t stored = number_at<std::uint32_t>(rest, 20), size = number_at<std::uint32_t>(rest, 24),
                  header = number_at<std::uint32_t>(rest, 42);
    read_zip64(file, rest.substr(fixed + name_length, extra_length), stored, size, header);
    bool const is_encrypted = (number_at<std::uint16_t>(rest, 8) & 1) != 0;
    bool const is_compressed = number_at<std::uint16_t>(rest, 10) != 0 || stored != size;
    out.entries.push_back({std::string(rest.substr(fixed, name_length)), header, size,
                           number_at<std::uint32_t>(rest, 16), is_encrypted, is_compressed});
    directory.drop(length);
  }
  return out;
}

LOCKSTEP_INLINE std::uint64_t zip_data_offset(DataFile const& file, ZipDirectory const& directory,
                                              ZipEntry const& entry) {
  if (entry.is_encrypted) file.fail("\"" + entry.name + "\" is encrypted");
  if (entry.is_compressed)
    file.fail("\"" + entry.name + "\" is compressed, and rows cannot be read from it; write it with np.savez");
  auto const header = file.read_text(entry.header, 30, "the header of an archived file");
  if (!header.starts_with("PK\x03\x04")) file.fail("\"" + entry.name + "\" has a damaged header");
  auto const name_length = number_at<std::uint16_t>(header, 26);
  auto const offset = entry.header + 30 + name_length + number_at<std::uint16_t>(header, 28);
  file.require_range(offset, entry.bytes, "\"" + entry.name + "\"");
  if (name_length != entry.name.size() || file.read_text(entry.header + 30, name_length, "a name") != entry.name)
    file.fail("\"" + entry.name + "\" has another name in its own header; the archive is damaged, write it again");
  auto const overlaps = [&](std::uint64_t at) { return at >= entry.header && at < offset + entry.bytes; };
  for (auto const& other : directory.entries)
    if (&other != &entry && overlaps(other.header))
      file.fail("\"" + entry.name + "\" shares bytes with \"" + other.name +
                "\"; the archive is damaged, write it again");
  if (offset + entry.bytes > directory.begin)
    file.fail("\"" + entry.name + "\" reaches into the directory of the archive; it is damaged, write it again");
  return offset;
}

LOCKSTEP_INLINE void check_zip_crc(DataFile const& file, ZipEntry const& entry, std::uint64_t offset) {
  constexpr std::uint64_t piece = std::uint64_t{1} << 18;
  std::vector<std::byte> room(static_cast<std::size_t>(std::min(piece, entry.bytes)));
  Crc32 crc;
  for (std::uint64_t at = 0; at < entry.bytes; at += piece) {
    auto const part = std::span(room).first(static_cast<std::size_t>(std::min(piece, entry.bytes - at)));
    file.read(offset + at, part);
    crc.add(part);
  }
  if (crc.sum() != entry.crc)
    file.fail("\"" + entry.name +
              "\" does not have the checksum (CRC-32) of the archive: a disk or a copy has changed bits; take another "
              "copy, or write it again");
}

}}}  // namespace lockstep::data::detail
