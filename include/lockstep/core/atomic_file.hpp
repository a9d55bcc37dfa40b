// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <lockstep/core/error.hpp>
#include <lockstep/core/file_remedy.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// File that appears complete or not at all. It is written under a temporary name in the same folder, and `commit`
/// renames it after its bytes are on the disk. The destructor removes the temporary file if `commit` was not called.
/// If several are written to one path, the last `commit` wins. A symbolic link stays a link: its target is replaced.
///
/// Only regular files are replaced. A named pipe or a character device, such as /dev/null, is written to as it is, from
/// the first `write` on; opening a pipe waits for its reader. A file that is named by a descriptor, such as
/// /dev/stdout, is appended to. A folder, a block device or a socket is refused.
class [[nodiscard]] AtomicFile {
 public:
  /// How the bytes are written.
  enum class Order {
    sequential,   ///< from the first to the last, which pipes and devices accept, too
    overwritten,  ///< with `overwrite`, for which only regular files will do
  };

  /// @throws DataError if the path cannot be written to; the message names the path and the system's reason
  explicit AtomicFile(std::string path, Order order = Order::sequential);
  ~AtomicFile();
  AtomicFile(AtomicFile const&) = delete;
  AtomicFile& operator=(AtomicFile const&) = delete;

  void write(std::span<std::byte const> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Overwrites the bytes from offset `at` on with `text`. Call it last, before `commit`.
  void overwrite(::off_t at, std::string_view text);

  void commit();

  /// Returns whether bytes go to what is at the path, a pipe or a device, at once.
  [[nodiscard]] bool is_stream() const noexcept { return temporary_.empty(); }

 private:
  /// Follows symbolic links, also to targets that do not exist, up to one that names a descriptor. Returns the path
  /// itself if it is no link.
  static std::string target_of(std::string path);
  /// Returns whether a path names an open descriptor, as /dev/stdout and /proc/self/fd/1 do.
  static bool names_descriptor(std::string const& path);
  /// Returns a suffix that no other process and no other file of this process uses.
  static std::string temporary_suffix();
  void open_temporary(struct ::stat const* replaced);
  [[noreturn]] void fail(char const* what) const;

  std::string path_, temporary_;
  int file_ = -1;
};

}}  // namespace lockstep

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/atomic_file.ipp>
#endif
