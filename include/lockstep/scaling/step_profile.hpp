// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/index.hpp>
#include <lockstep/parallel/device_work.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

/// Rank for which the others wait, and the phase in which it takes most extra time over the fastest rank.
struct SlowestRank {
  int rank = 0;
  char const* phase = "";  ///< "compute", "optimizer" or "data"
  double ms = 0;           ///< milliseconds of this phase
  double min_ms = 0;       ///< milliseconds of this phase on the fastest rank
  double lag_ms = 0;       ///< difference over all phases to the fastest rank; 0 with one rank
};

/// Speed of a run, and the milliseconds of one step of rank 0, as in run.json.
struct StepProfile {
  Index shards = 1;                ///< ranks x devices
  Index threads = 1;               ///< threads of each
  Index effective_batch_size = 1;  ///< the largest, if batches vary, for example by tokens
  double samples_per_step = 0;     ///< mean; 0: the effective batch
  double samples_per_second = 0;
  double data_wait_ms = 0;
  double forward_ms = 0;
  double backward_ms = 0;
  double communication_ms = 0;  ///< not hidden behind backward
  double optimizer_ms = 0;
  double pass_ms = 0;  ///< forward and backward together, if they are measured as one
  SlowestRank slowest{};
  parallel::DeviceStep gpu{};  ///< of rank 0's first GPU

  /// Returns the number of processors in use.
  [[nodiscard]] Index processors() const noexcept { return shards * threads; }
  /// Returns the samples of a step, over all ranks and devices.
  [[nodiscard]] double samples() const noexcept {
    return samples_per_step > 0 ? samples_per_step : static_cast<double>(effective_batch_size);
  }
  /// Returns the duration of a step, from the first sample to the first sample of the next step.
  [[nodiscard]] double step_ms() const noexcept {
    return samples_per_second == 0 ? 0 : 1e3 * samples() / samples_per_second;
  }
};

}}}  // namespace lockstep::scaling
