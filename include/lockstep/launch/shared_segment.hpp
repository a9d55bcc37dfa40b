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
#include <lockstep/launch/control_page.hpp>

namespace lockstep::inline LOCKSTEP_ABI::launch {

/// Memory that all ranks of a run on one host can address: the control page at its head, then zeroed memory for the
/// communicator. As large as the machine's memory, and sparse: a page costs nothing until it is touched. Between
/// processes it is a file without a name that the ranks inherit; it ends with the last of them, whatever happened.
class SharedSegment {
 public:
  /// For threads of this process.
  /// @throws ConfigError when the system refuses the memory
  static std::shared_ptr<SharedSegment> between_threads(int size, std::uint64_t job) {
    try {
      return create(-1, size, job);
    } catch (ConfigError const&) {
      return between_processes(
          size, job);  // pages are small, but only those in use count where memory is never overcommitted
    }
  }

  /// For processes that inherit `descriptor()`, which is closed on exec unless the starter says otherwise.
  /// @throws ConfigError when the system refuses the memory
  static std::shared_ptr<SharedSegment> between_processes(int size, std::uint64_t job) {
    int const file = ::memfd_create("lockstep", MFD_CLOEXEC);
    if (file < 0) throw ConfigError(refused("create shared memory (memfd_create)"));
    return create(file, size, job);
  }

  /// The segment behind an inherited descriptor, which this takes over.
  /// @throws ConfigError when it is not the segment of this job; the descriptor is then left alone
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
  [[nodiscard]] int descriptor() const noexcept { return file_; }  ///< -1 where only threads share it
  [[nodiscard]] ControlPage& control() const noexcept { return *reinterpret_cast<ControlPage*>(data_); }

  /// What a rank's communicators have in common for as long as the run goes; the first of them makes it.
  [[nodiscard]] std::shared_ptr<void>& common_to(int rank) noexcept { return common_[static_cast<std::size_t>(rank)]; }

  /// Gives pages back to the system; they read as zeros afterwards. Both on page borders.
  void forget(std::byte* begin, std::size_t length) const noexcept {
    ::madvise(begin, length, file_ < 0 ? MADV_DONTNEED : MADV_REMOVE);
  }

  /// The largest page that matters: what begins on such a border may be backed by huge pages.
  static constexpr std::size_t unit = std::size_t{2} << 20;

 private:
  using Head = ControlPage::Head;
  static constexpr std::uint64_t magic = 0x4c4f434b53544550;

  static std::shared_ptr<SharedSegment> create(int file, int size, std::uint64_t job) {
    auto const memory =
        static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    auto const bytes = (memory / unit + static_cast<std::size_t>(size) + 8) * unit;  // heaps, and room for control
    if (file >= 0 && !resize(file, bytes)) {
      auto const message = refused("size shared memory (ftruncate)") +
                           (errno == EFBIG ? "; raise the limit on the size of files (ulimit -f unlimited)" : "");
      ::close(file);
      throw ConfigError(message);
    }
    auto segment = std::shared_ptr<SharedSegment>(new SharedSegment(file, bytes, size));
    segment->control().head = {magic, job, size};
    return segment;
  }

  /// Beyond a limit on the size of files there is a signal as well, which ends who does not expect it.
  static bool resize(int file, std::size_t bytes) {
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
      : file_(file), bytes_(bytes), common_(static_cast<std::size_t>(size)), data_(map(file, bytes)) {
    if (data_ == nullptr) {
      auto const message = refused("map " + std::to_string(bytes >> 20) + " MiB of address space");
      if (file >= 0) ::close(file);
      throw ConfigError(message + "; raise the limit on address space (ulimit -v unlimited)");
    }
    ::madvise(data_, bytes_, MADV_HUGEPAGE);  // a hint: without it pages are small
  }

  /// Begins on a border of huge pages; null when the system refuses.
  static std::byte* map(int file, std::size_t bytes) noexcept {
    int const access = PROT_READ | PROT_WRITE, lazily = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    auto* const room = ::mmap(nullptr, bytes + unit, file < 0 ? access : PROT_NONE, lazily, -1, 0);
    if (room == MAP_FAILED) return nullptr;
    auto* const begin = static_cast<std::byte*>(room);
    auto const lead = (unit - reinterpret_cast<std::uintptr_t>(room) % unit) % unit;
    if (file >= 0 &&
        ::mmap(begin + lead, bytes, access, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file, 0) == MAP_FAILED) {
      auto const why = errno;
      ::munmap(room, bytes + unit);
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
  std::vector<std::shared_ptr<void>> common_;  // to the communicators of each rank
  std::byte* data_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::launch
