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

/// Looks at --save-dir, and at what --resume names, without changing anything.
/// @throws ConfigError when something else than a directory is there, one that may not be written to, or a run that is
/// not to be gone on with; or when the checkpoint is not there
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
                        "); name another directory, remove that run, or go on with it by --resume auto");
}

/// Creates --save-dir. @returns whether it was not there   @throws ConfigError with the system's reason
inline bool create_save_dir(std::string const& directory) {
  std::error_code error;
  bool const is_new = std::filesystem::create_directories(directory, error);
  if (error)
    throw ConfigError("--save-dir " + directory + ": cannot be created: " + error.message() +
                      "; name another directory");
  return is_new;
}

/// Creates --save-dir and holds it for this process while it lives, so that no second one mixes its lines and
/// checkpoints with this one's. Where the file system has no locks, as some of a network, nothing is held. What it has
/// created goes with it if it is still empty: of a run that was refused before its first step nothing is left.
class [[nodiscard]] SaveDirLock {
 public:
  SaveDirLock() = default;
  /// @throws ConfigError when it cannot be created, or another process holds it
  explicit SaveDirLock(std::string const& directory)
      : created_(create_save_dir(directory) ? std::filesystem::absolute(directory).string() : ""),
        file_(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (file_ < 0 || ::flock(file_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
    ::close(file_);
    throw ConfigError("--save-dir " + directory +
                      ": another process is training into it; wait until that has ended, or name another directory");
  }
  SaveDirLock(SaveDirLock&& other) noexcept
      : created_(std::exchange(other.created_, {})), file_(std::exchange(other.file_, -1)) {}
  SaveDirLock& operator=(SaveDirLock&& other) noexcept {
    std::swap(created_, other.created_), std::swap(file_, other.file_);
    return *this;
  }
  ~SaveDirLock() {
    if (!created_.empty()) ::rmdir(created_.c_str());  // which leaves one that is not empty
    if (file_ >= 0) ::close(file_);
  }

 private:
  std::string created_;
  int file_ = -1;
};

}}}  // namespace lockstep::app
