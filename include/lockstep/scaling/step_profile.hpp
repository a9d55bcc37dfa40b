// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/parallel/device_work.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

/// Rank for which the others wait, and the phase in which it takes most extra time over the fastest rank.
struct SlowestRank {
  int rank = 0;            ///< number of the rank
  char const* phase = "";  ///< "compute", "optimizer" or "data"
  double ms = 0;           ///< milliseconds of this phase
  double min_ms = 0;       ///< milliseconds of this phase on the fastest rank
  double lag_ms = 0;       ///< difference over all phases to the fastest rank; 0 with one rank
};

/// Milliseconds of one rank's average step, and how its host's processors served it.
struct RankStep {
  double data_ms = 0;           ///< wait for batches
  double compute_ms = 0;        ///< forward and backward
  double communication_ms = 0;  ///< not hidden behind backward
  double optimizer_ms = 0;      ///< update of the parameters
  double processor_ms = 0;      ///< processor time of compute; 0: unknown
  double deviation_ms = 0;      ///< standard deviation of processor_ms between steps
  double queued_ms = 0;         ///< time in which the training thread was ready to run and had no processor
  double loader_ms = 0;         ///< time of a loader's thread to make its part of the batch; 0: unknown, or no threads
  double throttled_ms = 0;      ///< time for which a quota stopped it, summed over processors
  double observed = 0;          ///< looks at loader threads that read, while training waited for data
  double locked = 0;            ///< looks that found them waiting for a lock
  double threads = 1;           ///< training threads
  double cores = 1;             ///< processors that the rank may use
  double core_set = 0;          ///< number of the set of these processors, equal for ranks that share it
};

/// Speed of a run, and the milliseconds of one step of rank 0, as in run.json.
struct StepProfile {
  Index shards = 1;                ///< ranks x devices
  Index threads = 1;               ///< threads of each
  Index effective_batch_size = 1;  ///< the largest, if batches vary, for example by tokens
  double samples_per_step = 0;     ///< mean; 0: the effective batch
  double samples_per_second = 0;   ///< of all ranks
  double data_wait_ms = 0;         ///< wait for batches
  double forward_ms = 0;           ///< 0 if `pass_ms` is measured
  double backward_ms = 0;          ///< 0 if `pass_ms` is measured
  double communication_ms = 0;     ///< not hidden behind backward
  double optimizer_ms = 0;         ///< update of the parameters
  double pass_ms = 0;              ///< forward and backward together, if they are measured as one
  SlowestRank slowest{};           ///< the rank for which others wait
  parallel::DeviceStep gpu{};      ///< of rank 0's first GPU
  std::vector<RankStep> ranks{};   ///< by rank; empty on a GPU, and for runs of versions without it
  double gradient_bytes = 0;       ///< of all parameters, as sent
  double fast_step_ms = 0;         ///< a tenth of the steps take less; 0: unknown

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
