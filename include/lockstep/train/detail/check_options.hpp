// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>

namespace lockstep::inline LOCKSTEP_ABI::train::detail {

/// Numbers that no run can have. @throws ConfigError with name, value and rule
template <class FitOptions, class Optimizer>
void check_options(FitOptions const& options, Optimizer const& optimizer) {
  struct Count {
    char const* name;
    Index value, least;
  };
  for (auto const& each : {Count{"epochs", options.epochs, 0}, Count{"max_steps", options.max_steps, 0},
                           Count{"accumulation", options.accumulation, 1},
                           Count{"schedule.warmup_steps", options.schedule.warmup_steps, 0},
                           Count{"schedule.total_steps", options.schedule.total_steps, 0},
                           Count{"check_replicas_every", options.check_replicas_every, 0},
                           Count{"evaluate_every", options.evaluate_every, 0}, Count{"patience", options.patience, 0},
                           Count{"checkpoints.every", options.checkpoints.every, 0},
                           Count{"checkpoints.keep", options.checkpoints.keep, 0}})
    if (each.value < each.least)
      throw ConfigError(std::string("fit: ") + each.name + " is " + std::to_string(each.value) +
                        "; it must be at least " + std::to_string(each.least));
  if constexpr (requires { optimizer.check(); }) optimizer.check();
  if (!(options.clip_norm >= 0))
    throw ConfigError("fit: clip_norm is " + std::to_string(options.clip_norm) +
                      "; it must be at least 0, which does not clip");
}

}  // namespace lockstep::inline LOCKSTEP_ABI::train::detail
