// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/atomic_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

LOCKSTEP_COLD_INLINE AtomicFile::AtomicFile(std::string path, Order order, std::stop_token stop)
    : path_(target_of(std::move(path))), stop_(std::move(stop)) {
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

LOCKSTEP_COLD_INLINE AtomicFile::~AtomicFile() {
  if (file_ < 0) return;
  ::close(file_);
  if (!is_stream()) ::unlink(temporary_.c_str());
}

LOCKSTEP_COLD_INLINE void AtomicFile::open_temporary(struct ::stat const* replaced) {
  constexpr int attempts = 8;
  for (int i = 0; i < attempts && file_ < 0 && (i == 0 || errno == EEXIST); ++i) {
    temporary_ = path_ + "." + random_suffix() + ".partial";
    file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  }
  if (file_ < 0) fail("create");
  if (!replaced) return;
  // Keeps the owner, if permitted, and the permissions of the replaced file.
  static_cast<void>(::fchown(file_, replaced->st_uid, replaced->st_gid) == 0);
  static_cast<void>(::fchmod(file_, replaced->st_mode & 0777));
}

LOCKSTEP_COLD_INLINE void AtomicFile::open_stream() {
  for (auto const until = Clock::seconds() + longest_wait;
       ;) {  // without O_NONBLOCK, opening a pipe would wait for its reader, and ignore a request to stop
    file_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file_ >= 0) return;
    if (errno != ENXIO && errno != EINTR) fail("write");
    wait_for_reader(until);
  }
}

LOCKSTEP_COLD_INLINE void AtomicFile::wait_for_reader(double until) const {
  constexpr int milliseconds = 50;
  ::pollfd polled{file_, POLLOUT, 0};  // without a file it only sleeps
  static_cast<void>(::poll(&polled, 1, milliseconds));
  if (stop_.stop_requested())
    throw DataError(path_ + ": a stop was requested while the pipe waited for its reader; the file is not complete");
  if (!stop_.stop_possible() && Clock::seconds() > until)
    throw DataError(path_ + ": the pipe has waited for its reader in vain; start the reader first, or name a file");
}

LOCKSTEP_INLINE void AtomicFile::write(std::span<std::byte const> bytes) {
  if (file_ < 0) open_stream();
  for (auto until = Clock::seconds() + longest_wait; !bytes.empty();) {
    auto const written = ::write(file_, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(written));
      until = Clock::seconds() + longest_wait;
    } else if (errno == EAGAIN) {
      wait_for_reader(until);
    } else if (errno != EINTR) {
      fail("write");
    }
  }
}

LOCKSTEP_COLD_INLINE void AtomicFile::overwrite(::off_t at, std::string_view text) {
  if (::lseek(file_, at, SEEK_SET) < 0) fail("write");
  write(text);
}

LOCKSTEP_COLD_INLINE void AtomicFile::commit() {
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

LOCKSTEP_COLD_INLINE std::string AtomicFile::target_of(std::string path) {
  char target[PATH_MAX];
  for (int links = 0; links < 40 && !names_descriptor(path); ++links) {  // a limit like the system's own
    auto const length = ::readlink(path.c_str(), target, sizeof target);
    if (length <= 0 || length == sizeof target) break;
    refuse_foreign_link(path);
    auto const folder = target[0] == '/' ? std::string::npos : path.rfind('/');
    path.erase(folder == std::string::npos ? 0 : folder + 1);
    path.append(target, static_cast<std::size_t>(length));
  }
  return path;
}

LOCKSTEP_COLD_INLINE bool AtomicFile::names_descriptor(std::string const& path) {
  return path.starts_with("/dev/fd/") || (path.starts_with("/proc/") && path.find("/fd/") != std::string::npos);
}

LOCKSTEP_COLD_INLINE void AtomicFile::refuse_foreign_link(std::string const& path) {
  auto const slash = path.rfind('/');
  auto const folder = slash == std::string::npos ? std::string(".") : path.substr(0, slash + 1);
  struct ::stat link {};
  struct ::stat around {};
  if (::lstat(path.c_str(), &link) != 0 || ::stat(folder.c_str(), &around) != 0) return;
  bool const is_shared = (around.st_mode & S_ISVTX) != 0 && (around.st_mode & S_IWOTH) != 0;
  if (!is_shared || link.st_uid == ::geteuid() || link.st_uid == around.st_uid) return;
  throw DataError(path +
                  ": is a symbolic link of another user in a folder where everybody may write, and could lead "
                  "to any file; name a file in a folder of your own");
}

LOCKSTEP_COLD_INLINE void AtomicFile::fail(char const* what) const {
  auto const reason = errno;
  throw DataError(path_ + ": cannot " + what + " the file: " + std::strerror(reason) + file_remedy(reason));
}

LOCKSTEP_INLINE void AtomicFile::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

}}  // namespace lockstep
