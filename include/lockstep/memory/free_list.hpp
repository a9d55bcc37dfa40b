// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <utility>
#include <vector>

#include <lockstep/core/version.hpp>
#include <lockstep/memory/scratch.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace memory {

/// Free parts of an arena. `take` allocates from the smallest part that is large enough. Adjacent parts are merged.
/// Owns nothing and touches no memory, so it works for any space. Equal calls in equal order return equal places. Not
/// thread-safe.
class FreeList {
  struct Part {
    std::byte* data;
    std::size_t bytes, chunk;
  };

 public:
  /// Returns null if no part is large enough.
  [[nodiscard]] std::byte* take(std::size_t bytes) noexcept;

  /// Adds a part. Never merges parts of different chunks, even if they are adjacent.
  void give(std::byte* data, std::size_t bytes, std::size_t chunk);

  /// Hides all current parts until `end_scope`: `take` then uses only parts given later. `end_scope` forgets what is
  /// left of those, for an arena that rewinds to a mark. Calls may be nested; pass to `end_scope` the result of its
  /// `begin_scope`.
  [[nodiscard]] std::size_t begin_scope() noexcept { return std::exchange(hidden_, parts_.size()); }
  /// Returns to the scope `outer`, in which freed memory is reused again.
  void end_scope(std::size_t outer) noexcept;

  /// Forgets all memory.
  void clear() noexcept;

 private:
  [[nodiscard]] std::vector<Part>::iterator first() noexcept;

  std::vector<Part> parts_;  // by chunk and address, after the hidden ones
  std::size_t hidden_ = 0;
};

}}}  // namespace lockstep::memory

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/memory/free_list.ipp>
#endif
