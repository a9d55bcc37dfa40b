// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/scaling/step_profile.hpp>
#include <lockstep/train/run_record.hpp>

namespace lockstep::inline LOCKSTEP_ABI::scaling {

/// What a run's record says of its average step.
[[nodiscard]] inline StepProfile profile_of(train::RunRecord const& record) {
  return {.shards = Index{record.world_size} * record.devices,
          .threads = record.threads,
          .effective_batch_size = record.effective_batch_size,
          .samples_per_second = record.samples_per_second(),
          .data_wait_ms = record.milliseconds_of_step(record.data_wait_seconds),
          .forward_ms = record.milliseconds_of_step(record.phases.forward),
          .backward_ms = record.milliseconds_of_step(record.phases.backward),
          .communication_ms = record.milliseconds_of_step(record.phases.communication),
          .optimizer_ms = record.milliseconds_of_step(record.phases.optimizer),
          .pass_ms = record.milliseconds_of_step(record.phases.pass)};
}

}  // namespace lockstep::inline LOCKSTEP_ABI::scaling
