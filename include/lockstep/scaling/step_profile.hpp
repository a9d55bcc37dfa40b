// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/index.hpp>

namespace lockstep::inline LOCKSTEP_ABI::scaling {

/// The rank that does most of a step by itself, so that the others wait for it, and what it needs more time for than
/// the rank that does least.
struct SlowestRank {
  int rank = 0;
  char const* phase = "";  ///< "compute", "optimizer" or "data"
  double ms = 0;           ///< of that phase
  double least_ms = 0;     ///< of that phase, on the other
  double lag_ms = 0;       ///< of all phases, more than on the other; 0 with one rank
};

/// How fast a run was and where the milliseconds of one step of rank 0 went: what run.json records of it.
struct StepProfile {
  Index shards = 1;                ///< ranks x devices
  Index threads = 1;               ///< of each
  Index effective_batch_size = 1;  ///< of batches that vary, as those by tokens do, the most
  double samples_per_step = 0;     ///< the mean; 0: the effective batch
  double samples_per_second = 0;
  double data_wait_ms = 0;
  double forward_ms = 0;
  double backward_ms = 0;
  double communication_ms = 0;  ///< not hidden behind backward
  double optimizer_ms = 0;
  double pass_ms = 0;  ///< forward and backward together, where they are one piece of work
  SlowestRank slowest{};

  /// Processors at work.
  [[nodiscard]] Index processors() const noexcept { return shards * threads; }
  /// In a step, of all ranks and devices.
  [[nodiscard]] double samples() const noexcept {
    return samples_per_step > 0 ? samples_per_step : static_cast<double>(effective_batch_size);
  }
  /// From the first sample of one step to that of the next.
  [[nodiscard]] double step_ms() const noexcept {
    return samples_per_second == 0 ? 0 : 1e3 * samples() / samples_per_second;
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::scaling
