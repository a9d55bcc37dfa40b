// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/memory/space.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {
struct RoundedProducts;
}

namespace lockstep::inline LOCKSTEP_ABI::memory {

/// Where work of a space is queued, in order. Cheap to copy; does not own.
template <class Space>
class Stream {
  static_assert(sizeof(Space) == 0, "Lockstep: streams of this space need lockstep/cuda.cuh, compiled with nvcc");
};

/// The host's stream: a pool of threads, and how products of float matrices on it round their factors, if they may.
/// Work is complete when the call that queued it returns.
template <>
class Stream<HostSpace> {
 public:
  /// Only programs that name such products compile them.
  explicit Stream(ThreadPool& pool, kernel::detail::RoundedProducts const* rounded = nullptr) noexcept
      : pool_(&pool), rounded_(rounded) {}
  [[nodiscard]] ThreadPool& pool() const noexcept { return *pool_; }
  [[nodiscard]] kernel::detail::RoundedProducts const* rounded_products() const noexcept { return rounded_; }
  /// Nothing is ever outstanding.
  void synchronize() const noexcept {}
  /// Nothing goes on beside.
  void join() const noexcept {}

 private:
  ThreadPool* pool_;
  kernel::detail::RoundedProducts const* rounded_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::memory
