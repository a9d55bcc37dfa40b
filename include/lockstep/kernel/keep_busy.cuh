// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Keeps a GPU's stream busy, so that the host can queue work that then runs without waits for the host. For
/// measurements; changes no memory.
struct KeepBusy {
  /// Loads the kernel onto the current device. Otherwise the first `run` does it, and may then wait for queued work.
  KeepBusy();

  /// Queues a wait of about `microseconds`, from half of it to twice as long.
  static void run(memory::Stream<CudaSpace> stream, int microseconds);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/keep_busy.icuh>
#endif
