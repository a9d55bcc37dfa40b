// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/detail/launch.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {
namespace detail { inline namespace LOCKSTEP_CUDA_ABI {

/// Waits for about so many microseconds. Runs in one thread. A template because nvcc does not support inline kernels.
template <class Count>
LOCKSTEP_CUDA_KERNEL void wait_on_device(Count microseconds) {
  for (Count i = 0; i < microseconds; ++i) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700
    __nanosleep(1000);
#endif
  }
}

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace detail

/// Keeps a GPU's stream busy, so that the host can queue work that then runs without waits for the host. For
/// measurements; changes no memory.
struct KeepBusy {
  /// Loads the kernel onto the current device. Otherwise the first `run` does it, and may then wait for queued work.
  KeepBusy() { detail::load("kernel::KeepBusy", detail::wait_on_device<int>); }

  /// Queues a wait of about `microseconds`, from half of it to twice as long.
  static void run(memory::Stream<CudaSpace> stream, int microseconds) {
    detail::launch_grid("kernel::KeepBusy", stream, 1, 1, detail::wait_on_device<int>, microseconds);
  }
};

}}}  // namespace lockstep::kernel
