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

/// A file that is there whole or not at all: written under another name beside its place, and moved there by `commit`
/// once its bytes are on the disk, for good when `commit` returns. Without `commit` nothing stays behind. Of several
/// that are written to one place the last `commit` counts. A symbolic link stays one: what it points to is replaced.
class [[nodiscard]] AtomicFile {
 public:
  /// @throws DataError when the place cannot be written to; names the path and the system's reason
  explicit AtomicFile(std::string path) : path_(target_of(std::move(path))), temporary_(path_ + beside()) {
    if (path_.empty()) throw DataError("a file is to be written, and its path is empty; name one");
    struct ::stat found {};
    bool const exists = ::stat(path_.c_str(), &found) == 0;
    if (exists && S_ISDIR(found.st_mode)) {
      errno = EISDIR;
      fail("create");
    }
    file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file_ < 0) fail("create");
    // Whoever may read the file that it replaces may read it.
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
  /// The same in place of what was written from byte `at` on. The last call before `commit`.
  void overwrite(::off_t at, std::string_view text) {
    if (::lseek(file_, at, SEEK_SET) < 0) fail("write");
    write(text);
  }

  void commit() {
    if (::fsync(file_) != 0) fail("sync");
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename");
    ::close(std::exchange(file_, -1));
    auto const slash = path_.rfind('/');  // the name is on the disk too, where the file system can say so
    auto const folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
    if (int const place = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); place >= 0) {
      ::fsync(place);
      ::close(place);
    }
  }

 private:
  /// What a symbolic link points to, be it there or not, or the path.
  static std::string target_of(std::string path) {
    char target[PATH_MAX];
    for (int links = 0; links < 40; ++links) {  // more than that, and the system gives up, too
      auto const length = ::readlink(path.c_str(), target, sizeof target);
      if (length <= 0 || length == sizeof target) break;
      auto const folder = target[0] == '/' ? std::string::npos : path.rfind('/');
      path.erase(folder == std::string::npos ? 0 : folder + 1);
      path.append(target, static_cast<std::size_t>(length));
    }
    return path;
  }
  /// Nobody else's, in this process or another.
  static std::string beside() {
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
