// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>

#include <lockstep/data/detail/data_file.hpp>
#include <lockstep/data/detail/stream_copy.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Header in the page before a mapped file. Its address is a multiple of a power of two that exceeds page and file. It
/// can therefore be found from any address in the file, without a list of all mappings.
struct MappingHead {
  static constexpr std::array<std::uint64_t, 2> mark{0x6c8f1a3e5b7d9024u, 0xd1b54a32d192ed03u};

  std::array<std::uint64_t, 2> marked = mark;
  std::uintptr_t self = 0, begin = 0, end = 0;
  std::atomic<int> lost = 0;  // a part was read that the file no longer has
};

/// The SIGBUS handler before MappedReads.
inline struct ::sigaction sigbus_before {};

/// SIGBUS handler while a MappedReads lives. If a mapped file has become shorter, it maps zeros in place of the missing
/// part, and sets `lost` in the file's header. It passes all other faults to the previous handler.
/// @pre called by the system; uses only functions that are safe in a signal handler
inline void survive_shortened_file(int, ::siginfo_t* info, void*) noexcept {
  auto const error = errno;
  auto const at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  auto const page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (auto place = 2 * page; place != 0 && info->si_code == BUS_ADRERR; place *= 2) {
    auto* const head = reinterpret_cast<MappingHead*>(at & ~(place - 1));
    struct {
      alignas(MappingHead) std::array<std::byte, sizeof(MappingHead)> bytes;
    } copy;  // read by the system, which accepts unmapped addresses
    ::iovec const to{&copy, sizeof copy}, from{head, sizeof copy};
    if (::process_vm_readv(::getpid(), &to, 1, &from, 1, 0) != static_cast<::ssize_t>(sizeof copy)) continue;
    auto const& found = *std::launder(reinterpret_cast<MappingHead const*>(&copy));
    if (found.marked != MappingHead::mark || found.self != reinterpret_cast<std::uintptr_t>(head) || at < found.begin ||
        at >= found.end)
      continue;
    head->lost.store(1);
    auto const from_here = at / page * page;
    // Not the library's mmap, which ThreadSanitizer treats as a write to memory that other threads read.
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    if (::syscall(SYS_mmap, from_here, found.end - from_here, PROT_READ, flags, -1, 0) == -1) break;
    errno = error;
    return;
  }
  ::sigaction(SIGBUS, &sigbus_before, nullptr);  // the access is repeated and meets this handler
}

/// A memory-mapped file. Thread-safe.
class FileMapping {
 public:
  /// @throws DataError if the file cannot be mapped
  explicit FileMapping(std::shared_ptr<DataFile const> file) : file_(std::move(file)) {
    auto const page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    auto const bytes = (static_cast<std::size_t>(file_->size()) + page - 1) / page * page;
    auto const place = std::bit_ceil(page + bytes);
    // Reserves twice the size, and unmaps everything outside the part that is aligned to its size.
    auto* const reserved = ::mmap(nullptr, 2 * place, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) fail();
    auto const begin = reinterpret_cast<std::uintptr_t>(reserved), at = (begin + place - 1) / place * place;
    if (at > begin) ::munmap(reserved, at - begin);
    ::munmap(reinterpret_cast<void*>(at + place), begin + place - at);
    memory_ = Memory{reinterpret_cast<void*>(at), place};
    map(at, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    head_ = new (memory_.at) MappingHead;
    head_->self = at;
    head_->begin = at + page;
    head_->end = at + page + bytes;
    if (bytes > 0) map(at + page, bytes, PROT_READ, MAP_SHARED, file_->descriptor());
  }

  /// @throws DataError if the file has become shorter since it was opened
  void read(std::uint64_t offset, std::span<std::byte> out) const {
    stream_copy(out.data(), reinterpret_cast<std::byte const*>(head_->begin) + offset, out.size());
    // If only the rest of the last page is missing, it reads as zeros without SIGBUS.
    if (head_->lost.load() == 0 && file_->size_now() >= offset + out.size()) return;
    file_->fail("was shortened while it was mapped; leave it alone while training, and open it again");
  }

 private:
  struct Memory {
    void* at = nullptr;
    std::size_t bytes = 0;
    Memory() = default;
    Memory(void* where, std::size_t size) noexcept : at(where), bytes(size) {}
    Memory(Memory&& other) noexcept : at(std::exchange(other.at, nullptr)), bytes(other.bytes) {}
    Memory& operator=(Memory&& other) noexcept {
      std::swap(at, other.at);
      std::swap(bytes, other.bytes);
      return *this;
    }
    ~Memory() {
      if (at != nullptr) ::munmap(at, bytes);
    }
  };

  void map(std::uintptr_t at, std::size_t bytes, int protection, int flags, int file) const {
    if (::mmap(reinterpret_cast<void*>(at), bytes, protection, flags | MAP_FIXED, file, 0) == MAP_FAILED) fail();
  }
  [[noreturn]] void fail() const { file_->fail("cannot be mapped: " + system_message(errno) + "; read it instead"); }

  std::shared_ptr<DataFile const> file_;
  Memory memory_;
  MappingHead* head_ = nullptr;
};

}}}  // namespace lockstep::data::detail
