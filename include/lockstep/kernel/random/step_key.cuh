// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/random/step_key.hpp>
#include <lockstep/memory/buffer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {
namespace detail { inline namespace LOCKSTEP_CUDA_ABI {

/// Runs in one thread. The key is passed by value, so no host memory must stay unchanged until the kernel runs. A
/// template because nvcc does not support inline kernels.
template <class Key>
LOCKSTEP_CUDA_KERNEL void store_key(Key key, Key* to) {
  *to = key;
}

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace detail

template <>
class StepKey<CudaSpace> {
 public:
  /// Sets the key for later work in the stream. Must not be recorded.
  void set(memory::Stream<CudaSpace> stream, std::uint64_t key) const {
    detail::launch_grid("kernel::StepKey", stream, 1, 1, detail::store_key<std::uint64_t>, key, key_.data());
  }
  /// Returns the same mask as on the host, bit-identical. The key is computed where it is used.
  [[nodiscard]] DropoutMask mask(std::uint64_t number, std::uint32_t dropped) const noexcept {
    return {number, dropped, key_.data()};
  }

 private:
  memory::Buffer<std::uint64_t, CudaSpace> key_{1, memory::CudaResource{}};
};

}}}  // namespace lockstep::kernel
