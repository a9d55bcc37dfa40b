// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/source/open_idx.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

LOCKSTEP_INLINE FileArray open_idx(std::string const& path) {
  auto file = std::make_shared<detail::DataFile const>(path);
  auto const byte = [&](std::uint64_t at) { return file->read_number<std::uint8_t>(at); };
  if (byte(0) == 0x1f && byte(1) == 0x8b) file->fail("is compressed; decompress it with gunzip first");
  auto const code = byte(2);
  NumberType type{};
  switch (code) {
    case 0x08:
      type = {'u', 1};
      break;
    case 0x09:
      type = {'i', 1};
      break;
    case 0x0b:
      type = {'i', 2};
      break;
    case 0x0c:
      type = {'i', 4};
      break;
    case 0x0d:
      type = {'f', 4};
      break;
    case 0x0e:
      type = {'f', 8};
      break;
    default:
      type.bytes = 0;
  }
  if (byte(0) != 0 || byte(1) != 0 || type.bytes == 0)
    file->fail("is not an IDX file: it begins with the bytes " + std::to_string(byte(0)) + ", " +
               std::to_string(byte(1)) + ", " + std::to_string(code) +
               "; 0, 0 and one of 8, 9, 11, 12, 13, 14 are expected");
  std::uint64_t const axes = byte(3);
  std::vector<Index> shape;
  for (std::uint64_t axis = 0; axis < axes; ++axis) {
    std::uint32_t extent = 0;
    for (std::uint64_t k = 0; k < 4; ++k) extent = extent << 8 | byte(4 + 4 * axis + k);
    shape.push_back(extent);
  }
  FileArray out(file, type, std::move(shape), 4 + 4 * axes, FileArray::Order::swapped);
  auto const expected = 4 + 4 * axes + static_cast<std::uint64_t>(out.rows() * out.width() * type.bytes);
  if (file->size() != expected)
    file->fail("has " + std::to_string(file->size()) + " bytes, and an array of the extents " + out.extents() +
               " has " + std::to_string(expected) + "; its header is damaged, write it again");
  return out;
}

}}}  // namespace lockstep::data
