// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

/// Forward and backward of an optimizer step on a GPU, averaged over the steps of a run; zeros on the CPU.
struct DeviceStep {
  double replayed = 0;    ///< fraction of the passes that were one CUDA graph
  double queue_ms = 0;    ///< time of the host to queue the work
  double busy_ms = 0;     ///< time of the device if it need not wait for the host; 0: not measured
  double kernels = 0;     ///< launches; a matrix product counts as one
  double product_ms = 0;  ///< least time of the matrix products, at the device's peak rate; 0: unknown
  double memory_ms = 0;   ///< estimated time of the memory traffic, at the device's peak bandwidth; 0: unknown
};

/// Work of one GPU in the passes of a run. A pass is forward and backward of one batch.
struct DeviceWork {
  Index passes = 0;            ///< of the first device
  Index replays = 0;           ///< passes that were one CUDA graph
  double queue_seconds = 0;    ///< time of the host to queue the passes
  Index measured = 0;          ///< passes that were queued while the device was busy with something else
  double busy_seconds = 0;     ///< time of the device for the measured passes
  double kernels = 0;          ///< launches of all passes
  double product_seconds = 0;  ///< least time of all passes' matrix products, at the device's peak rate; 0: unknown
  double memory_seconds = 0;   ///< estimated time of all passes' memory traffic, at the peak bandwidth; 0: unknown

  /// Returns the average over `steps` optimizer steps, or zeros without steps.
  [[nodiscard]] DeviceStep per_step(Index steps) const noexcept {
    if (steps <= 0 || passes <= 0) return {};
    auto const all = static_cast<double>(steps), count = static_cast<double>(passes);
    auto const busy = measured > 0 ? busy_seconds / static_cast<double>(measured) * count : 0;
    return {static_cast<double>(replays) / count, queue_seconds * 1e3 / all, busy * 1e3 / all, kernels / all,
            product_seconds * 1e3 / all,          memory_seconds * 1e3 / all};
  }
};

}}}  // namespace lockstep::parallel
