// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>

#include <lockstep/core/error.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data::detail {

/// An open file that closes itself. Opening never waits, not even for the other end of a pipe.
class [[nodiscard]] Descriptor {
 public:
  explicit Descriptor(std::string const& path) noexcept
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(Descriptor const&) = delete;
  Descriptor& operator=(Descriptor const&) = delete;
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_;
};

/// What the system says about `errno`.
inline std::string system_message(int error) { return std::system_category().message(error); }

/// Text from a file, fit for a message: quoted, short, printable.
inline std::string excerpt(std::string_view text) {
  constexpr std::size_t longest = 40;
  std::string out = "\"";
  for (char c : text.substr(0, longest)) {
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  }
  return out + (text.size() > longest ? "...\"" : "\"");
}

/// Fills `out` from a place in a file; fewer bytes only where the file ends. @throws DataError
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

/// The whole of a text file. It is read, not mapped: a mapped file that another process shortens kills the reader.
/// @throws DataError when it is missing, not to be read, no regular file, empty, or not text
inline std::string read_text_file(std::string const& path) {
  Descriptor const file(path);
  if (file.get() < 0) {
    throw DataError(path + ": cannot be opened: " + system_message(errno) + "; check the path and its permissions");
  }
  struct ::stat status {};
  if (::fstat(file.get(), &status) != 0) throw DataError(path + ": cannot be examined: " + system_message(errno));
  if (S_ISDIR(status.st_mode)) throw DataError(path + ": is a directory; give a file in it");
  if (!S_ISREG(status.st_mode))
    throw DataError(path + ": is not a regular file; every rank reads it, so copy it to one");
  if (status.st_size == 0) throw DataError(path + ": is empty; it must hold at least one sample");
  std::string content(static_cast<std::size_t>(status.st_size), '\0');
  content.resize(read_at(file.get(), content.data(), content.size(), 0, path));

  auto const control = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f';
  };
  auto const head = std::string_view(content).substr(0, 4096);
  auto const controls = static_cast<std::size_t>(std::count_if(head.begin(), head.end(), control));
  auto const zero = content.find('\0');
  if (zero != std::string::npos || controls * 20 > head.size()) {
    throw DataError(path + ": is not text (" +
                    (zero != std::string::npos ? "there is a zero byte at offset " + std::to_string(zero)
                                               : std::to_string(controls) + " of its first " +
                                                     std::to_string(head.size()) + " bytes are control characters") +
                    "); give a text file, UTF-8 for instance");
  }
  return content;
}

}  // namespace lockstep::inline LOCKSTEP_ABI::data::detail
