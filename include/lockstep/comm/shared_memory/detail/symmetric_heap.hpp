// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <vector>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

/// First-fit allocator of offsets in a range of bytes. Ranks that make the same calls get the same offsets. Not
/// thread-safe.
class SymmetricHeap {
 public:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  explicit SymmetricHeap(std::size_t capacity) : capacity_(capacity) {}

  /// Returns the offset of `bytes` free bytes, a multiple of `alignment`, or `none` if none are left.
  [[nodiscard]] std::size_t allocate(std::size_t bytes, std::size_t alignment) {
    std::size_t at = 0;
    auto next = ranges_.begin();
    for (; next != ranges_.end() && at + bytes > next->begin; ++next)
      at = (next->end + alignment - 1) / alignment * alignment;
    if (bytes > capacity_ || at > capacity_ - bytes) return none;
    ranges_.insert(next, {at, at + bytes});
    return at;
  }

  void free(std::size_t at) {
    std::erase_if(ranges_, [at](Range const& range) { return range.begin == at; });
  }

 private:
  struct Range {
    std::size_t begin, end;
  };

  std::size_t capacity_;
  std::vector<Range> ranges_;  // sorted by offset
};

}}}  // namespace lockstep::comm::detail
