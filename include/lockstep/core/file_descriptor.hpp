// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <lockstep/core/error.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Owns a file descriptor, or none (-1), and closes it.
class [[nodiscard]] FileDescriptor {
 public:
  FileDescriptor() = default;
  /// Takes ownership; -1 is no file.
  explicit FileDescriptor(int descriptor) noexcept : descriptor_(descriptor) {}
  /// Opens a file for reading. Never blocks, not even for the other end of a pipe. Owns none if the file cannot be
  /// opened; `errno` then has the reason.
  explicit FileDescriptor(std::string const& path) noexcept
      : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  /// Takes over the file.
  FileDescriptor(FileDescriptor&& other) noexcept : descriptor_(other.release()) {}
  /// Exchanges the files of both.
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~FileDescriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  /// Returns the descriptor, or -1.
  [[nodiscard]] int get() const noexcept { return descriptor_; }
  /// Returns the descriptor and gives up ownership.
  int release() noexcept { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

/// Returns the system's message for an `errno`.
inline std::string system_message(int error) { return std::system_category().message(error); }

/// Fills `out` from `offset` in the open file `fd`. Returns the number of bytes, which is smaller only at the file's
/// end.
/// @throws DataError if reading fails; names `path`
inline std::size_t read_at(int fd, char* out, std::size_t bytes, std::size_t offset, std::string const& path) {
  std::size_t done = 0;
  while (done < bytes) {
    auto const n = ::pread(fd, out + done, bytes - done, static_cast<::off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw DataError(path + ": cannot be read: " + system_message(errno));
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

/// Writes all bytes at `offset` of the open file `fd`. Returns whether it could; otherwise `errno` has the reason.
[[nodiscard]] inline bool write_at(int fd, std::string_view bytes, std::size_t offset) noexcept {
  while (!bytes.empty()) {
    auto const n = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<::off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
    offset += static_cast<std::size_t>(n);
  }
  return true;
}

/// Creates a file without a name next to `path`, on the same file system, for reading and writing. Owns none if it
/// cannot be created; `errno` then has the reason.
inline FileDescriptor unnamed_file(std::string const& path) {
  auto name = path + ".XXXXXX";
  FileDescriptor file(::mkostemp(name.data(), O_CLOEXEC));
  if (file.get() >= 0) ::unlink(name.c_str());
  return file;
}

}}  // namespace lockstep
