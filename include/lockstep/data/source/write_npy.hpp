// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/core/atomic_file.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/data/detail/refuse_existing.hpp>
#include <lockstep/data/source/file_array.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Writes an array as a new .npy file, which numpy.load and `open_npy` read. The file appears complete or not at all.
/// @param values the elements in row-major order   @param shape the extents; their product is the number of elements
/// @throws ShapeError if the shape does not fit the number of elements, or has more than 32 axes
/// @throws DataError if the file exists or cannot be written; names the path and the system's reason
/// @source NEP 1: the .npy format, version 1
template <Number Value>
void write_npy(std::string const& path, std::span<Value const> values, std::vector<Index> const& shape) {
  static_assert(std::endian::native == std::endian::little);
  constexpr std::size_t most = 32;  // of numpy before version 2; 64 since then
  if (shape.size() > most)
    throw ShapeError(path + ": an array of " + std::to_string(shape.size()) + " axes; numpy reads at most " +
                     std::to_string(most) + ": merge some");
  std::string extents;
  Index count = 1;
  bool is_valid = true;
  for (Index const extent : shape) {
    extents += std::to_string(extent) + ",";
    is_valid = is_valid && extent >= 0 && !__builtin_mul_overflow(count, extent, &count);
  }
  if (!is_valid)
    throw ShapeError(path + ": an array of shape (" + extents +
                     "); extents are at least 0, and their product fits in 64 bits");
  if (count != std::ssize(values))
    throw ShapeError(path + ": an array of shape (" + extents + ") has " + std::to_string(count) + " elements, not " +
                     std::to_string(values.size()) + "; pass the extents of the values");
  auto const type = NumberType::of<Value>();
  auto header = std::string("{'descr': '") + (type.bytes == 1 ? '|' : '<') + type.kind + std::to_string(type.bytes) +
                "', 'fortran_order': False, 'shape': (" + extents + "), }";
  constexpr std::size_t fixed = 10, alignment = 64;  // the elements begin at a multiple of 64 bytes
  header.resize((fixed + header.size() + alignment) / alignment * alignment - fixed, ' ');
  header.back() = '\n';
  auto const length = static_cast<std::uint16_t>(header.size());
  detail::refuse_existing(path);
  AtomicFile file(path);
  file.write(std::string_view("\x93NUMPY\x01\x00", 8));  // NOLINT(bugprone-string-literal-with-embedded-nul): sized
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(header);
  file.write(std::as_bytes(values));
  file.commit();
}

}}}  // namespace lockstep::data
