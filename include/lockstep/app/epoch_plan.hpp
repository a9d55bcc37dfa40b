// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/app/options.hpp>
#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {

/// Division of an epoch into steps.
struct EpochPlan {
  Index micro_steps = 0;      ///< batches of each rank or device
  Index optimizer_steps = 0;  ///< of --grad-accum-steps micro-steps each; the last one may have fewer
  Index effective_batch = 0;  ///< samples of an optimizer step, over all ranks and devices

  /// Plans an epoch that has each of `samples` samples once, in batches of --batch-size.
  [[nodiscard]] static EpochPlan of(Options const& options, Index samples) noexcept {
    auto const up = [](Index count, Index each) { return (count + each - 1) / each; };
    auto const micro_steps = up(samples, options.global_batch());
    return {micro_steps, up(micro_steps, options.grad_accum_steps), options.effective_batch_size()};
  }
};

}}}  // namespace lockstep::app
