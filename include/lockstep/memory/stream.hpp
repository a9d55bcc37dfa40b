// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/memory/space.hpp>

namespace lockstep::inline LOCKSTEP_ABI::memory {

/// Where work of a space is queued, in order. Cheap to copy; does not own.
template <class Space>
class Stream {
  static_assert(sizeof(Space) == 0, "Lockstep: streams of this space need lockstep/cuda.cuh, compiled with nvcc");
};

/// The host's stream: a pool of threads. Work is complete when the call that queued it returns.
template <>
class Stream<HostSpace> {
 public:
  explicit Stream(ThreadPool& pool) noexcept : pool_(&pool) {}
  [[nodiscard]] ThreadPool& pool() const noexcept { return *pool_; }
  /// Nothing is ever outstanding.
  void synchronize() const noexcept {}

 private:
  ThreadPool* pool_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::memory
