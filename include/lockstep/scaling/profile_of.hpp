// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/scaling/step_profile.hpp>
#include <lockstep/train/run_record.hpp>

namespace lockstep::inline LOCKSTEP_ABI::scaling {

/// What a run's record says of its average step.
[[nodiscard]] inline StepProfile profile_of(train::RunRecord const& record) {
  double const scale = record.steps == 0 ? 0 : 1e3 / static_cast<double>(record.steps);
  return {.shards = Index{record.world_size} * record.devices,
          .threads = record.threads,
          .effective_batch_size = record.effective_batch_size,
          .samples_per_second = record.samples_per_second(),
          .data_wait_ms = record.data_wait_seconds * scale,
          .forward_ms = record.phases.forward * scale,
          .backward_ms = record.phases.backward * scale,
          .communication_ms = record.phases.communication * scale,
          .optimizer_ms = record.phases.optimizer * scale,
          .pass_ms = record.phases.pass * scale};
}

}  // namespace lockstep::inline LOCKSTEP_ABI::scaling
