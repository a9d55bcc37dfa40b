// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <system_error>

#include <lockstep/core/error.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// An open file that closes itself.
class [[nodiscard]] FileDescriptor {
 public:
  /// Opens a file for reading. Never blocks, not even for the other end of a pipe.
  explicit FileDescriptor(std::string const& path) noexcept
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  /// Owns an open file; below 0: none.
  explicit FileDescriptor(int fd) noexcept : fd_(fd) {}
  ~FileDescriptor() { reset(); }
  FileDescriptor(FileDescriptor const&) = delete;
  FileDescriptor& operator=(FileDescriptor const&) = delete;
  [[nodiscard]] int get() const noexcept { return fd_; }
  void reset(int fd = -1) noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_;
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

}}  // namespace lockstep
