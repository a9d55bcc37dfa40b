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
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(AtomicFile const&) = delete;
  AtomicFile& operator=(AtomicFile const&) = delete;

  void write(std::span<std::byte const> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Overwrites the bytes from offset `at` on with `text`. Call it last, before `commit`.
  void overwrite(::off_t at, std::string_view text);

  void commit();

 private:
  /// Follows symbolic links, also to targets that do not exist. Returns the path itself if it is no link.
  static std::string target_of(std::string path);
  /// Returns a suffix that no other process and no other file of this process uses.
  static std::string temporary_suffix();
  [[noreturn]] void fail(char const* what) const;

  std::string path_, temporary_;
  int file_ = -1;
};

}}}  // namespace lockstep::train

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/files/atomic_file.ipp>
#endif
