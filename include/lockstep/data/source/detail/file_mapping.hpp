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
struct MappingHeader {
  static constexpr std::array<std::uint64_t, 2> magic_number{0x6c8f1a3e5b7d9024u, 0xd1b54a32d192ed03u};

  std::array<std::uint64_t, 2> magic = magic_number;
  std::uintptr_t self = 0, begin = 0, end = 0;
  std::atomic<int> is_truncated = 0;  // a part was read that the file no longer has
};

/// The SIGBUS handler before MappedReads.
inline struct ::sigaction previous_sigbus_action {};

/// SIGBUS handler while a MappedReads lives. If a mapped file has become shorter, it maps zeros in place of the missing
/// part, and sets `is_truncated` in the file's header. It passes all other faults to the previous handler.
/// @pre called by the system; uses only functions that are safe in a signal handler
void handle_sigbus(int, ::siginfo_t* info, void*) noexcept;

/// A memory-mapped file. Thread-safe.
class FileMapping {
 public:
  /// @throws DataError if the file cannot be mapped
  explicit FileMapping(std::shared_ptr<DataFile const> file);

  /// @throws DataError if the file has become shorter since it was opened
  void read(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  struct Mapping {
    void* at = nullptr;
    std::size_t bytes = 0;
    Mapping() = default;
    Mapping(void* where, std::size_t size) noexcept : at(where), bytes(size) {}
    Mapping(Mapping&& other) noexcept : at(std::exchange(other.at, nullptr)), bytes(other.bytes) {}
    Mapping& operator=(Mapping&& other) noexcept;
    ~Mapping();
  };

  void map(std::uintptr_t at, std::size_t bytes, int protection, int flags, int file) const;
  [[noreturn]] void fail() const { file_->fail("cannot be mapped: " + system_message(errno) + "; read it instead"); }

  std::shared_ptr<DataFile const> file_;
  Mapping mapping_;
  MappingHeader* header_ = nullptr;
};

}}}  // namespace lockstep::data::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/source/detail/file_mapping.ipp>
#endif
