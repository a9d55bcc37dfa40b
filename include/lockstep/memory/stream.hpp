// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/memory/space.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace memory {

/// Queue of a space's work, in order. Cheap to copy; does not own.
template <class Space>
class Stream {
  static_assert(sizeof(Space) == 0, "Lockstep: streams of this space need lockstep/cuda.cuh, compiled with nvcc");
};

/// Base of the setting of a host stream's matrix products. The GEMM kernel derives the setting from it and reads it.
/// The stream stores only a pointer, so that programs without such a setting do not compile its kernels.
struct MatrixProductSetting {};

/// The host's stream: a thread pool, and an optional setting of its matrix products. Work is complete when the call
/// that queued it returns.
template <>
class Stream<HostSpace> {
 public:
  /// @param matrix_products must outlive the stream; null for full precision
  explicit Stream(ThreadPool& pool, MatrixProductSetting const* matrix_products = nullptr) noexcept
      : pool_(&pool), matrix_products_(matrix_products) {}
  /// Returns the threads of kernels.
  [[nodiscard]] ThreadPool& pool() const noexcept { return *pool_; }
  /// Returns null if matrix products have full precision.
  [[nodiscard]] MatrixProductSetting const* matrix_products() const noexcept { return matrix_products_; }
  /// Returns at once: no work is ever outstanding.
  void synchronize() const noexcept {}
  /// Returns at once: the host forks no work.
  void join() const noexcept {}

 private:
  ThreadPool* pool_;
  MatrixProductSetting const* matrix_products_;
};

}}}  // namespace lockstep::memory
