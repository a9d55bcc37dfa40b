// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/shared_memory/shared_segment.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

LOCKSTEP_INLINE std::shared_ptr<SharedSegment> SharedSegment::between_threads(int size, std::uint64_t job) {
  try {
    return create(-1, size, job);
  } catch (ConfigError const&) {
    return between_processes(
        size, job);  // pages are small, but only those in use count if the system does not overcommit memory
  }
}

LOCKSTEP_INLINE std::shared_ptr<SharedSegment> SharedSegment::between_processes(int size, std::uint64_t job) {
  int const file = ::memfd_create("lockstep", MFD_CLOEXEC);
  if (file < 0) throw ConfigError(refused("create shared memory (memfd_create)"));
  return create(file, size, job);
}

LOCKSTEP_INLINE std::shared_ptr<SharedSegment> SharedSegment::attach(int file, int size, std::uint64_t job) {
  Head head{};
  struct stat status {};
  bool const ours = ::pread(file, &head, sizeof head, 0) == sizeof head && ::fstat(file, &status) == 0 &&
                    head.magic == magic && head.job == job && head.size == size &&
                    status.st_size >= static_cast<off_t>(sizeof(ControlPage));
  if (!ours)
    throw ConfigError("launch: file descriptor " + std::to_string(file) +
                      " (LOCKSTEP_MEMORY_FD) is not the shared memory of this run: the LOCKSTEP_* variables were "
                      "inherited from another program; unset them, or start with --nproc N");
  ::fcntl(file, F_SETFD, FD_CLOEXEC);
  return std::shared_ptr<SharedSegment>(new SharedSegment(file, static_cast<std::size_t>(status.st_size), size));
}

LOCKSTEP_INLINE SharedSegment::~SharedSegment() {
  ::munmap(data_, bytes_);
  if (file_ >= 0) ::close(file_);
}

LOCKSTEP_INLINE std::shared_ptr<void>& SharedSegment::shared_object(int rank) noexcept {
  return shared_objects_[static_cast<std::size_t>(rank)];
}

LOCKSTEP_INLINE void SharedSegment::release_pages(std::byte* begin, std::size_t length) const noexcept {
  // The system does not take back locked pages (mlock), and some sandboxes refuse the call.
  if (::madvise(begin, length, file_ < 0 ? MADV_DONTNEED : MADV_REMOVE) != 0) std::memset(begin, 0, length);
}

LOCKSTEP_INLINE std::shared_ptr<SharedSegment> SharedSegment::create(int file, int size, std::uint64_t job) {
  auto const memory =
      static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  auto const bytes = (memory / unit + static_cast<std::size_t>(size) + 8) * unit;  // heaps, and room for control
  if (file >= 0 && !set_file_size(file, bytes)) {
    auto const message = refused("size shared memory (ftruncate)") +
                         (errno == EFBIG ? "; raise the limit on the size of files (ulimit -f unlimited)" : "");
    ::close(file);
    throw ConfigError(message);
  }
  try {
    auto segment = std::shared_ptr<SharedSegment>(new SharedSegment(file, bytes, size));
    segment->control().head = {magic, job, size};
    return segment;
  } catch (ConfigError const&) {
    if (file >= 0) ::close(file);
    throw;
  }
}

LOCKSTEP_INLINE bool SharedSegment::set_file_size(int file, std::size_t bytes) {
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

LOCKSTEP_INLINE SharedSegment::SharedSegment(int file, std::size_t bytes, int size)
    : file_(file), bytes_(bytes), shared_objects_(static_cast<std::size_t>(size)), data_(map(file, bytes)) {
  if (data_ == nullptr)
    throw ConfigError(refused("map " + std::to_string(bytes >> 20) + " MiB of address space") +
                      "; raise the limit on address space (ulimit -v unlimited)");
  ::madvise(data_, bytes_, MADV_HUGEPAGE);  // a hint: without it pages are small
}

LOCKSTEP_INLINE std::byte* SharedSegment::map(int file, std::size_t bytes) noexcept {
  int const access = PROT_READ | PROT_WRITE, lazily = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  auto* const reserved = ::mmap(nullptr, bytes + unit, file < 0 ? access : PROT_NONE, lazily, -1, 0);
  if (reserved == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(reserved);
  auto const lead = (unit - reinterpret_cast<std::uintptr_t>(reserved) % unit) % unit;
  if (file >= 0 && ::mmap(begin + lead, bytes, access, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file, 0) == MAP_FAILED) {
    auto const why = errno;
    ::munmap(reserved, bytes + unit);
    errno = why;
    return nullptr;
  }
  if (lead != 0) ::munmap(begin, lead);
  ::munmap(begin + lead + bytes, unit - lead);
  return begin + lead;
}

LOCKSTEP_INLINE std::string SharedSegment::refused(std::string const& what) {
  return "launch: the system refused to " + what + ": " + std::strerror(errno);
}

}}}  // namespace lockstep::launch
