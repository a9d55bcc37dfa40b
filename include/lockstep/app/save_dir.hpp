// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include <lockstep/app/options.hpp>
#include <lockstep/core/error.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {

/// Checks --save-dir, and the file of --resume, without changes.
/// @throws ConfigError if the path is not a directory, is not writable, or has a run that is not to be resumed; or if
/// the checkpoint does not exist
inline void check_save_dir(std::string const& directory, std::string const& resume = Options::never) {
  namespace fs = std::filesystem;
  bool const goes_on = resume == Options::automatic;
  if (std::error_code error; !goes_on && resume != Options::never && !fs::is_regular_file(resume, error))
    throw ConfigError("--resume " + resume +
                      ": there is no such file; name a checkpoint, or auto for the newest one in --save-dir");
  if (directory.empty()) return;
  std::error_code error;
  auto const there = fs::status(directory, error);
  if (fs::exists(there) && !fs::is_directory(there))
    throw ConfigError("--save-dir " + directory + ": is not a directory; name another");
  if (fs::exists(there) && ::faccessat(AT_FDCWD, directory.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    throw ConfigError("--save-dir " + directory + ": cannot be written to: " + std::strerror(errno) +
                      "; change its permissions, or name another directory");
  if (goes_on) return;
  for (char const* sign : {"run.json", "metrics.jsonl", "metrics.csv", "checkpoints"})
    if (fs::exists(fs::path(directory) / sign, error))
      throw ConfigError("--save-dir " + directory + ": already holds a run (" + sign +
                        "); name another directory, remove that run, or resume it with --resume auto");
}

/// Creates --save-dir.   @returns whether it did not exist   @throws ConfigError with the system's reason
inline bool create_save_dir(std::string const& directory) {
  std::error_code error;
  bool const is_new = std::filesystem::create_directories(directory, error);
  if (error)
    throw ConfigError("--save-dir " + directory + ": cannot be created: " + error.message() +
                      "; name another directory");
  return is_new;
}

/// Creates --save-dir and locks it for this process, so that no second process writes into it. File systems without
/// locks, as some network file systems, get no lock. The destructor removes a directory that it created if it is empty,
/// as after a run that was rejected before its first step.
class [[nodiscard]] SaveDirLock {
 public:
  SaveDirLock() = default;
  /// @throws ConfigError if it cannot be created, or another process holds the lock
  explicit SaveDirLock(std::string const& directory)
      : created_(create_save_dir(directory) ? std::filesystem::absolute(directory).string() : ""),
        file_(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (file_ < 0 || ::flock(file_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
    ::close(file_);
    throw ConfigError("--save-dir " + directory +
                      ": another process is using it; wait until that process has ended, or name another directory");
  }
  SaveDirLock(SaveDirLock&& other) noexcept
      : created_(std::exchange(other.created_, {})), file_(std::exchange(other.file_, -1)) {}
  SaveDirLock& operator=(SaveDirLock&& other) noexcept {
    std::swap(created_, other.created_), std::swap(file_, other.file_);
    return *this;
  }
  ~SaveDirLock() {
    if (!created_.empty()) ::rmdir(created_.c_str());  // fails for a directory that is not empty
    if (file_ >= 0) ::close(file_);
  }

 private:
  std::string created_;
  int file_ = -1;
};

}}}  // namespace lockstep::app
