// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/launch/shared_memory/control_page.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

/// Memory that all ranks of a run on one host can address: the control page, followed by zeroed memory for
/// communicators. It is sparse and as large as the machine's memory: a page costs nothing before its first use. Between
/// processes it is an anonymous file that the ranks inherit. The system frees it with the last rank, even after a
/// crash.
class SharedSegment {
 public:
  /// Creates a segment for threads of this process.
  /// @throws ConfigError if the system refuses the memory
  static std::shared_ptr<SharedSegment> between_threads(int size, std::uint64_t job);

  /// Creates a segment for processes that inherit `descriptor()`. The descriptor is closed on exec unless the caller
  /// changes that.
  /// @throws ConfigError if the system refuses the memory
  static std::shared_ptr<SharedSegment> between_processes(int size, std::uint64_t job);

  /// Opens the segment of an inherited descriptor and takes ownership of it.
  /// @throws ConfigError if it is not this job's segment, or the system refuses to map it; the descriptor then stays
  /// open
  static std::shared_ptr<SharedSegment> attach(int file, int size, std::uint64_t job);

  SharedSegment(SharedSegment const&) = delete;
  SharedSegment& operator=(SharedSegment const&) = delete;
  ~SharedSegment();

  /// first byte, aligned to a page; the control page is there
  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }  ///< size with the control page
  [[nodiscard]] int descriptor() const noexcept { return file_; }      ///< -1 if only threads share it
  /// Returns the control page, at the beginning of the segment.
  [[nodiscard]] ControlPage& control() const noexcept { return *reinterpret_cast<ControlPage*>(data_); }

  /// Returns the object that a rank's communicators share for the whole run. The first of them creates it.
  [[nodiscard]] std::shared_ptr<void>& shared_object(int rank) noexcept;

  /// Zeroes pages and, if it can, returns them to the system. Both arguments must be multiples of the page size.
  void release_pages(std::byte* begin, std::size_t length) const noexcept;

  /// Largest relevant page size: huge pages may back memory that is aligned to it.
  static constexpr std::size_t unit = std::size_t{2} << 20;

 private:
  using Head = ControlPage::Head;
  static constexpr std::uint64_t magic = 0x4c4f434b53544550;

  static std::shared_ptr<SharedSegment> create(int file, int size, std::uint64_t job);

  /// Sets the file's size. Blocks SIGXFSZ, which the system sends beyond the file size limit and which ends a process
  /// by default.
  static bool set_file_size(int file, std::size_t bytes);

  SharedSegment(int file, std::size_t bytes, int size);

  /// Maps memory that is aligned to huge pages. Returns null if the system refuses.
  static std::byte* map(int file, std::size_t bytes) noexcept;

  static std::string refused(std::string const& what);
  int file_;
  std::size_t bytes_;
  std::vector<std::shared_ptr<void>> shared_objects_;  // shared objects, by rank
  std::byte* data_;
};

}}}  // namespace lockstep::launch

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/shared_memory/shared_segment.ipp>
#endif
