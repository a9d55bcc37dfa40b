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

/// What products of float matrices may do to their factors; sums stay float.
enum class Factors {
  as_they_are,
  bfloat16,  ///< round them, where the processor has instructions that multiply them faster then
};

/// The host's stream: a pool of threads, and what products on it may do. Work is complete when the call that queued it
/// returns.
template <>
class Stream<HostSpace> {
 public:
  explicit Stream(ThreadPool& pool, Factors factors = Factors::as_they_are) noexcept
      : pool_(&pool), factors_(factors) {}
  [[nodiscard]] ThreadPool& pool() const noexcept { return *pool_; }
  [[nodiscard]] Factors factors() const noexcept { return factors_; }
  /// Nothing is ever outstanding.
  void synchronize() const noexcept {}

 private:
  ThreadPool* pool_;
  Factors factors_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::memory
