// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/atomic_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

LOCKSTEP_INLINE AtomicFile::AtomicFile(std::string path, Order order) : path_(target_of(std::move(path))) {
  if (path_.empty()) throw DataError("the path of a file to write is empty; name one");
  struct ::stat found {};
  bool const exists = ::stat(path_.c_str(), &found) == 0;
  if (exists && S_ISDIR(found.st_mode)) {
    errno = EISDIR;
    fail("create");
  }
  if (!exists || (S_ISREG(found.st_mode) && !names_descriptor(path_))) {
    open_temporary(exists ? &found : nullptr);
    return;
  }
  bool const flows = S_ISFIFO(found.st_mode) || S_ISCHR(found.st_mode) || S_ISREG(found.st_mode);
  if (!flows)
    throw DataError(path_ + ": is a " + (S_ISBLK(found.st_mode) ? "block device" : "socket") +
                    ", which is neither replaced nor written to; name a file");
  if (order == Order::overwritten)
    throw DataError(path_ + ": is a " + (S_ISFIFO(found.st_mode) ? "pipe" : "device") +
                    ", and this file's first bytes are written last; name a regular file");
  if (::access(path_.c_str(), W_OK) != 0) fail("write");
}

LOCKSTEP_INLINE AtomicFile::~AtomicFile() {
  if (file_ < 0) return;
  ::close(file_);
  if (!is_stream()) ::unlink(temporary_.c_str());
}

LOCKSTEP_INLINE void AtomicFile::open_temporary(struct ::stat const* replaced) {
  temporary_ = path_ + temporary_suffix();
  file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file_ < 0) fail("create");
  if (!replaced) return;
  // Keeps the owner, if permitted, and the permissions of the replaced file.
  static_cast<void>(::fchown(file_, replaced->st_uid, replaced->st_gid) == 0);
  static_cast<void>(::fchmod(file_, replaced->st_mode & 07777));
}

LOCKSTEP_INLINE void AtomicFile::write(std::span<std::byte const> bytes) {
  if (file_ < 0) file_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
  if (file_ < 0) fail("write");
  while (!bytes.empty()) {
    auto const written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

LOCKSTEP_INLINE void AtomicFile::overwrite(::off_t at, std::string_view text) {
  if (::lseek(file_, at, SEEK_SET) < 0) fail("write");
  write(text);
}

LOCKSTEP_INLINE void AtomicFile::commit() {
  if (is_stream()) {
    if (file_ < 0) write(std::string_view());  // the reader of a pipe gets its end
    ::close(std::exchange(file_, -1));
    return;
  }
  if (::fsync(file_) != 0 && errno != EINVAL && errno != ENOTSUP && errno != ENOSYS) fail("sync");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename");
  ::close(std::exchange(file_, -1));
  auto const slash = path_.rfind('/');  // the folder is synchronized too, if the file system supports that
  auto const folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
  if (int const descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); descriptor >= 0) {
    ::fsync(descriptor);
    ::close(descriptor);
  }
}

LOCKSTEP_INLINE std::string AtomicFile::target_of(std::string path) {
  char target[PATH_MAX];
  for (int links = 0; links < 40 && !names_descriptor(path); ++links) {  // a limit like the system's own
    auto const length = ::readlink(path.c_str(), target, sizeof target);
    if (length <= 0 || length == sizeof target) break;
    auto const folder = target[0] == '/' ? std::string::npos : path.rfind('/');
    path.erase(folder == std::string::npos ? 0 : folder + 1);
    path.append(target, static_cast<std::size_t>(length));
  }
  return path;
}

LOCKSTEP_INLINE bool AtomicFile::names_descriptor(std::string const& path) {
  return path.starts_with("/dev/fd/") || (path.starts_with("/proc/") && path.find("/fd/") != std::string::npos);
}

LOCKSTEP_INLINE std::string AtomicFile::temporary_suffix() {
  static std::atomic<unsigned> written{0};
  return "." + std::to_string(::getpid()) + "-" + std::to_string(written++) + ".partial";
}

LOCKSTEP_INLINE void AtomicFile::fail(char const* what) const {
  auto const reason = errno;
  throw DataError(path_ + ": cannot " + what + " the file: " + std::strerror(reason) + file_remedy(reason));
}

}}  // namespace lockstep
