// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <lockstep/core/error.hpp>
#include <lockstep/train/detail/file_remedy.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// File that appears complete or not at all. It is written under a temporary name in the same folder, and `commit`
/// renames it after its bytes are on the disk. The destructor removes the temporary file if `commit` was not called.
/// If several are written to one path, the last `commit` wins. A symbolic link stays a link: its target is replaced.
class [[nodiscard]] AtomicFile {
 public:
  /// @throws DataError if the path cannot be written to; the message names the path and the system's reason
  explicit AtomicFile(std::string path) : path_(target_of(std::move(path))), temporary_(path_ + temporary_suffix()) {
    if (path_.empty()) throw DataError("the path of a file to write is empty; name one");
    struct ::stat found {};
    bool const exists = ::stat(path_.c_str(), &found) == 0;
    if (exists && S_ISDIR(found.st_mode)) {
      errno = EISDIR;
      fail("create");
    }
    file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file_ < 0) fail("create");
    // Keeps the permissions of the replaced file.
    if (exists) static_cast<void>(::fchmod(file_, found.st_mode & 07777));
  }
  ~AtomicFile() {
    if (file_ < 0) return;
    ::close(file_);
    ::unlink(temporary_.c_str());
  }
  AtomicFile(AtomicFile const&) = delete;
  AtomicFile& operator=(AtomicFile const&) = delete;

  void write(std::span<std::byte const> bytes) {
    while (!bytes.empty()) {
      auto const written = ::write(file_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail("write");
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
  }
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Overwrites the bytes from offset `at` on with `text`. Call it last, before `commit`.
  void overwrite(::off_t at, std::string_view text) {
    if (::lseek(file_, at, SEEK_SET) < 0) fail("write");
    write(text);
  }

  void commit() {
    if (::fsync(file_) != 0) fail("sync");
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename");
    ::close(std::exchange(file_, -1));
    auto const slash = path_.rfind('/');  // the folder is synchronized too, if the file system supports that
    auto const folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
    if (int const descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); descriptor >= 0) {
      ::fsync(descriptor);
      ::close(descriptor);
    }
  }

 private:
  /// Follows symbolic links, also to targets that do not exist. Returns the path itself if it is no link.
  static std::string target_of(std::string path) {
    char target[PATH_MAX];
    for (int links = 0; links < 40; ++links) {  // a limit like the system's own
      auto const length = ::readlink(path.c_str(), target, sizeof target);
      if (length <= 0 || length == sizeof target) break;
      auto const folder = target[0] == '/' ? std::string::npos : path.rfind('/');
      path.erase(folder == std::string::npos ? 0 : folder + 1);
      path.append(target, static_cast<std::size_t>(length));
    }
    return path;
  }
  /// Returns a suffix that no other process and no other file of this process uses.
  static std::string temporary_suffix() {
    static std::atomic<unsigned> written{0};
    return "." + std::to_string(::getpid()) + "-" + std::to_string(written++) + ".partial";
  }
  [[noreturn]] void fail(char const* what) const {
    auto const reason = errno;
    throw DataError(path_ + ": cannot " + what + " the file: " + std::strerror(reason) + detail::file_remedy(reason));
  }

  std::string path_, temporary_;
  int file_ = -1;
};

}}}  // namespace lockstep::train
