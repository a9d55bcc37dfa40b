// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/core/file_descriptor.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// A regular file, open for reading.
struct RegularFile {
  FileDescriptor file;      ///< open for reading
  struct ::stat status {};  ///< when it was opened

  /// Returns the bytes of the file when it was opened.
  [[nodiscard]] std::uint64_t size() const noexcept { return static_cast<std::uint64_t>(status.st_size); }
  /// Returns the time of its last change, in nanoseconds since 1970.
  [[nodiscard]] std::int64_t modified_ns() const noexcept {
    return status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
  }
  /// Whether the file belongs to the user of this process or to root. Only these may tell this process what to believe
  /// about other files, as an index or a cache does.
  [[nodiscard]] bool is_own() const noexcept { return status.st_uid == ::geteuid() || status.st_uid == 0; }
};

/// Opens a regular file for reading. Never waits: a named pipe, which would wait for its writer, is refused, and so are
/// folders, devices and sockets.
/// @param failed the beginning of the message if the system refuses
/// @throws DataError with the path, the system's reason and a remedy
[[nodiscard]] RegularFile open_regular_file(std::string const& path, char const* failed = "cannot be opened");

/// Reads text of a claimed length from an open file, in pieces, so that memory is taken only for bytes that exist. A
/// file with holes has any length that it claims, and zero bytes, which no text holds.
/// @param what for messages: "the header"
/// @throws DataError if a byte is zero, or the file ends earlier
[[nodiscard]] std::string read_text_at(int fd, std::uint64_t offset, std::uint64_t bytes, std::string const& path,
                                       char const* what);

/// Returns the text of a regular file.
/// @param most limit for its bytes
/// @throws DataError like `open_regular_file` and `read_text_at`, or if the file has more bytes
[[nodiscard]] std::string read_text_file(std::string const& path, std::uint64_t most);

}}  // namespace lockstep

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/regular_file.ipp>
#endif
