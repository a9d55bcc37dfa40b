// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/mman.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>

#include <lockstep/memory/block.hpp>
#include <lockstep/memory/space.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace memory {

/// Source of large memory: `allocate(bytes)` returns zeroed memory of the resource's space, aligned to at least 64
/// bytes. Communicators are resources too, so that peers can read gradients directly.
template <class Candidate>
concept MemoryResource = requires(Candidate& r, std::size_t bytes) {
  { r.allocate(bytes) } -> std::same_as<Block>;
};

/// The bad_alloc of large host memory, which knows the requested bytes.
class OutOfMemory : public std::bad_alloc {
 public:
  /// @param bytes the size that was refused
  explicit OutOfMemory(std::size_t bytes) noexcept : bytes_(bytes) {
    std::snprintf(text_, sizeof text_, "out of memory: the system refused %zu bytes of host memory", bytes);
  }
  /// Returns the size that was refused.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// Returns a sentence with the size.
  [[nodiscard]] char const* what() const noexcept override { return text_; }

 private:
  std::size_t bytes_;
  char text_[88];  // a string could need memory
};

/// Host memory: 2 MiB pages for large requests, otherwise aligned to cache lines. Memory that comes from the system is
/// zero already, and takes room in a page when the page is first used.
/// @throws OutOfMemory
class HostResource {
 public:
  /// Returns zeroed memory; an empty block for 0 bytes.   @throws OutOfMemory
  [[nodiscard]] Block allocate(std::size_t bytes) const {
    if (bytes > static_cast<std::size_t>(PTRDIFF_MAX) - 2 * huge_page) throw OutOfMemory(bytes);
    if (bytes == 0) return {};
    auto const alignment = bytes >= huge_page ? huge_page : cache_line;
    auto const rounded = (bytes + alignment - 1) / alignment * alignment;
    auto space = rounded + alignment;
    auto* const allocated = std::calloc(space, 1);
    if (!allocated) throw OutOfMemory(bytes);
    auto* data = allocated;
    std::align(alignment, rounded, data, space);
    if (alignment == huge_page) ::madvise(data, rounded, MADV_HUGEPAGE);  // a hint: without it pages are small
    return {static_cast<std::byte*>(data), bytes,
            [](void* owner, std::byte*, std::size_t) noexcept { std::free(owner); }, allocated};
  }

 private:
  static constexpr std::size_t huge_page = std::size_t{2} << 20;
  static constexpr std::size_t cache_line = 64;
};
static_assert(MemoryResource<HostResource>);

/// Default resource for large memory of a space.
template <class Space>
struct DefaultResourceOf;
/// Default resource for large memory of the host.
template <>
struct DefaultResourceOf<HostSpace> {
  using type = HostResource;  ///< default of host memory
};
/// Type of the default resource for large memory of a space.
template <class Space>
using DefaultResource = typename DefaultResourceOf<Space>::type;

}}}  // namespace lockstep::memory
