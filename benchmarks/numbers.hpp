// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <new>
#include <vector>

namespace lockstep_bench {

/// Allocates memory aligned to cache lines, like Lockstep's and PyTorch's own. An access of a wide vector to other
/// memory takes two cache lines.
template <class Value>
struct CacheLineAllocator {
  using value_type = Value;
  static constexpr std::align_val_t alignment{64};

  CacheLineAllocator() = default;
  template <class Other>
  CacheLineAllocator(CacheLineAllocator<Other> const&) noexcept {}

  [[nodiscard]] Value* allocate(std::size_t count) {
    return static_cast<Value*>(::operator new(count * sizeof(Value), alignment));
  }
  void deallocate(Value* at, std::size_t) noexcept { ::operator delete(at, alignment); }
  friend bool operator==(CacheLineAllocator const&, CacheLineAllocator const&) noexcept { return true; }
};

using Numbers = std::vector<float, CacheLineAllocator<float>>;

}  // namespace lockstep_bench
