// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/memory/space.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {
struct RoundedProducts;
}}}  // namespace lockstep::kernel::detail

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace memory {

/// Queue of a space's work, in order. Cheap to copy; does not own.
template <class Space>
class Stream {
  static_assert(sizeof(Space) == 0, "Lockstep: streams of this space need lockstep/cuda.cuh, compiled with nvcc");
};

/// The host's stream: a thread pool, and how its float matrix products may round their factors. Work is complete when
/// the call that queued it returns.
template <>
class Stream<HostSpace> {
 public:
  /// @param rounded a pointer, so that only programs that name such products compile them
  explicit Stream(ThreadPool& pool, kernel::detail::RoundedProducts const* rounded = nullptr) noexcept
      : pool_(&pool), rounded_(rounded) {}
  [[nodiscard]] ThreadPool& pool() const noexcept { return *pool_; }
  [[nodiscard]] kernel::detail::RoundedProducts const* rounded_products() const noexcept { return rounded_; }
  /// Returns at once: no work is ever outstanding.
  void synchronize() const noexcept {}
  /// Returns at once: the host forks no work.
  void join() const noexcept {}

 private:
  ThreadPool* pool_;
  kernel::detail::RoundedProducts const* rounded_;
};

}}}  // namespace lockstep::memory
