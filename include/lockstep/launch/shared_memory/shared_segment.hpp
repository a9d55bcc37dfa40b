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
  static std::shared_ptr<SharedSegment> between_threads(int size, std::uint64_t job) {
    try {
      return create(-1, size, job);
    } catch (ConfigError const&) {
      return between_processes(
          size, job);  // pages are small, but only those in use count if the system does not overcommit memory
    }
  }

  /// Creates a segment for processes that inherit `descriptor()`. The descriptor is closed on exec unless the caller
  /// changes that.
  /// @throws ConfigError if the system refuses the memory
  static std::shared_ptr<SharedSegment> between_processes(int size, std::uint64_t job) {
    int const file = ::memfd_create("lockstep", MFD_CLOEXEC);
    if (file < 0) throw ConfigError(refused("create shared memory (memfd_create)"));
    return create(file, size, job);
  }

  /// Opens the segment of an inherited descriptor and takes ownership of it.
  /// @throws ConfigError if it is not this job's segment; the descriptor then stays open
  static std::shared_ptr<SharedSegment> attach(int file, int size, std::uint64_t job) {
    Head head{};
    struct stat status {};
    bool const ours = ::pread(file, &head, sizeof head, 0) == sizeof head && ::fstat(file, &status) == 0 &&
                      head.magic == magic && head.job == job && head.size == size;
    if (!ours)
      throw ConfigError("launch: file descriptor " + std::to_string(file) +
                        " (LOCKSTEP_MEMORY_FD) is not the shared memory of this run: the LOCKSTEP_* variables were "
                        "inherited from another program; unset them, or start with --nproc N");
    ::fcntl(file, F_SETFD, FD_CLOEXEC);
    return std::shared_ptr<SharedSegment>(new SharedSegment(file, static_cast<std::size_t>(status.st_size), size));
  }

  SharedSegment(SharedSegment const&) = delete;
  SharedSegment& operator=(SharedSegment const&) = delete;
  ~SharedSegment() {
    ::munmap(data_, bytes_);
    if (file_ >= 0) ::close(file_);
  }

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] int descriptor() const noexcept { return file_; }  ///< -1 if only threads share it
  [[nodiscard]] ControlPage& control() const noexcept { return *reinterpret_cast<ControlPage*>(data_); }

  /// Returns the object that a rank's communicators share for the whole run. The first of them creates it.
  [[nodiscard]] std::shared_ptr<void>& shared_object(int rank) noexcept {
    return shared_objects_[static_cast<std::size_t>(rank)];
  }

  /// Returns pages to the system; they read as zeros afterwards. Both arguments must be multiples of the page size.
  void release_pages(std::byte* begin, std::size_t length) const noexcept {
    ::madvise(begin, length, file_ < 0 ? MADV_DONTNEED : MADV_REMOVE);
  }

  /// Largest relevant page size: huge pages may back memory that is aligned to it.
  static constexpr std::size_t unit = std::size_t{2} << 20;

 private:
  using Head = ControlPage::Head;
  static constexpr std::uint64_t magic = 0x4c4f434b53544550;

  static std::shared_ptr<SharedSegment> create(int file, int size, std::uint64_t job) {
    auto const memory =
        static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    auto const bytes = (memory / unit + static_cast<std::size_t>(size) + 8) * unit;  // heaps, and room for control
    if (file >= 0 && !set_file_size(file, bytes)) {
      auto const message = refused("size shared memory (ftruncate)") +
                           (errno == EFBIG ? "; raise the limit on the size of files (ulimit -f unlimited)" : "");
      ::close(file);
      throw ConfigError(message);
    }
    auto segment = std::shared_ptr<SharedSegment>(new SharedSegment(file, bytes, size));
    segment->control().head = {magic, job, size};
    return segment;
  }

  /// Sets the file's size. Blocks SIGXFSZ, which the system sends beyond the file size limit and which ends a process
  /// by default.
  static bool set_file_size(int file, std::size_t bytes) {
    sigset_t one, before;
    ::sigemptyset(&one);
    ::sigaddset(&one, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &one, &before);
    bool const done = ::ftruncate(file, static_cast<off_t>(bytes)) == 0;
    auto const why = errno;
    timespec const at_once{};
    if (!done && why == EFBIG) static_cast<void>(::sigtimedwait(&one, nullptr, &at_once));
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    errno = why;
    return done;
  }

  SharedSegment(int file, std::size_t bytes, int size)
      : file_(file), bytes_(bytes), shared_objects_(static_cast<std::size_t>(size)), data_(map(file, bytes)) {
    if (data_ == nullptr) {
      auto const message = refused("map " + std::to_string(bytes >> 20) + " MiB of address space");
      if (file >= 0) ::close(file);
      throw ConfigError(message + "; raise the limit on address space (ulimit -v unlimited)");
    }
    ::madvise(data_, bytes_, MADV_HUGEPAGE);  // a hint: without it pages are small
  }

  /// Maps memory that is aligned to huge pages. Returns null if the system refuses.
  static std::byte* map(int file, std::size_t bytes) noexcept {
    int const access = PROT_READ | PROT_WRITE, lazily = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    auto* const reserved = ::mmap(nullptr, bytes + unit, file < 0 ? access : PROT_NONE, lazily, -1, 0);
    if (reserved == MAP_FAILED) return nullptr;
    auto* const begin = static_cast<std::byte*>(reserved);
    auto const lead = (unit - reinterpret_cast<std::uintptr_t>(reserved) % unit) % unit;
    if (file >= 0 &&
        ::mmap(begin + lead, bytes, access, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file, 0) == MAP_FAILED) {
      auto const why = errno;
      ::munmap(reserved, bytes + unit);
      errno = why;
      return nullptr;
    }
    if (lead != 0) ::munmap(begin, lead);
    ::munmap(begin + lead + bytes, unit - lead);
    return begin + lead;
  }

  static std::string refused(std::string const& what) {
    return "launch: the system refused to " + what + ": " + std::strerror(errno);
  }
  int file_;
  std::size_t bytes_;
  std::vector<std::shared_ptr<void>> shared_objects_;  // shared objects, by rank
  std::byte* data_;
};

}}}  // namespace lockstep::launch
