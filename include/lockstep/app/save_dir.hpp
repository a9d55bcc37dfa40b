// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <lockstep/app/options.hpp>
#include <lockstep/core/atomic_file.hpp>
#include <lockstep/core/error.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {

/// Checks --save-dir, and the file of --resume, without changes.
/// @throws ConfigError if the path is not a directory, is not writable, cannot be created, begins with a ~ that no
/// shell has expanded, or has a run that is not to be resumed; or if the checkpoint does not exist
void check_save_dir(std::string const& directory, std::string const& resume = Options::never);

/// Checks the file of --init-from.   @throws ConfigError if it is not empty and not the name of a file
void check_init_from(std::string const& path);

/// Checks a file that a run writes at its end, such as --predictions, without changes.
/// @param inputs files that the run reads, and folders of such files; empty ones do not count
/// @param save_dir folder that the run creates if it is missing, and that may hold the file; empty: none
/// @throws ConfigError if it is one of the inputs, or a file below one, which it would replace; DataError if it cannot
/// be written
void check_output_file(std::string const& flag, std::string const& path, std::vector<std::string> const& inputs,
                       std::string const& save_dir = "");

/// Creates --save-dir.   @returns whether it did not exist   @throws ConfigError with the system's reason
bool create_save_dir(std::string const& directory);

/// Creates --save-dir and locks it for this process, so that no second process writes into it. File systems without
/// locks, as some network file systems, get no lock. The destructor removes a directory that it created if it is empty,
/// as after a run that was rejected before its first step.
class [[nodiscard]] SaveDirLock {
 public:
  SaveDirLock() = default;
  /// @throws ConfigError if it cannot be created, or another process holds the lock
  explicit SaveDirLock(std::string const& directory);
  /// Takes over the lock.
  SaveDirLock(SaveDirLock&& other) noexcept
      : created_(std::exchange(other.created_, {})), file_(std::exchange(other.file_, -1)) {}
  /// Exchanges the locks of both.
  SaveDirLock& operator=(SaveDirLock&& other) noexcept;
  ~SaveDirLock();

 private:
  std::string created_;
  int file_ = -1;
};

}}}  // namespace lockstep::app

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/app/save_dir.ipp>
#endif
