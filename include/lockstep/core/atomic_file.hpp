// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include <lockstep/core/clock.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/file_remedy.hpp>
#include <lockstep/core/random_suffix.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// File that appears complete or not at all. It is written under a random temporary name in the same folder, and
/// `commit` renames it after its bytes are on the disk. The destructor removes the temporary file if `commit` was not
/// called. If several are written to one path, the last `commit` wins. A symbolic link stays a link: its target is
/// replaced. A link of another user in a folder where everybody may write, such as /tmp, is refused.
///
/// Only regular files are replaced. A named pipe or a character device, such as /dev/null, is written to as it is, from
/// the first `write` on. A write to a pipe waits for its reader until a stop is requested, or half a minute if none can
/// be. A file that is named by a descriptor, such as /dev/stdout, is appended to. A folder, a block device or a socket
/// is refused.
class [[nodiscard]] AtomicFile {
 public:
  /// How the bytes are written.
  enum class Order {
    sequential,   ///< from the first to the last, which pipes and devices accept, too
    overwritten,  ///< with `overwrite`, for which only regular files will do
  };

  /// @throws DataError if the path cannot be written to; the message names the path and the system's reason
  /// @param stop ends a wait for the reader of a pipe
  explicit AtomicFile(std::string path, Order order = Order::sequential, std::stop_token stop = {});
  ~AtomicFile();
  AtomicFile(AtomicFile const&) = delete;
  AtomicFile& operator=(AtomicFile const&) = delete;

  /// Appends bytes.   @throws DataError if they cannot be written
  void write(std::span<std::byte const> bytes);
  /// Appends a string.   @throws DataError if it cannot be written
  void write(std::string_view text);
  /// Overwrites the bytes from offset `at` on with `text`. Call it last, before `commit`.
  void overwrite(::off_t at, std::string_view text);

  /// Makes the file appear at its path, once its bytes are on the disk. For a pipe or a device, only closes it. Call it
  /// once, after the last write.
  /// @throws DataError if the bytes cannot be written or the file cannot be renamed; the destructor then removes the
  /// temporary file
  void commit();

  /// Returns whether bytes go to what is at the path, a pipe or a device, at once.
  [[nodiscard]] bool is_stream() const noexcept { return temporary_.empty(); }

 private:
  /// Follows symbolic links, also to targets that do not exist, up to one that names a descriptor. Returns the path
  /// itself if it is no link.
  static std::string target_of(std::string path);
  /// Returns whether a path names an open descriptor, as /dev/stdout and /proc/self/fd/1 do.
  static bool names_descriptor(std::string const& path);
  /// Throws for a link that another user may have made to redirect the file, as the kernel does for links that it
  /// follows itself (fs.protected_symlinks).
  static void refuse_foreign_link(std::string const& path);
  void open_temporary(struct ::stat const* replaced);
  void open_stream();
  /// Waits a moment for the reader of a pipe.
  /// @throws DataError if a stop was requested, or if none can be requested and the reader has not come in time
  void wait_for_reader(double until) const;
  [[noreturn]] void fail(char const* what) const;

  static constexpr double longest_wait = 30;  // seconds without progress, if no stop can be requested

  std::string path_, temporary_;
  std::stop_token stop_;
  int file_ = -1;
};

}}  // namespace lockstep

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/atomic_file.ipp>
#endif
