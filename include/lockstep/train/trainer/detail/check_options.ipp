// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/trainer/detail/check_options.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_INLINE void check_options(FitOptions const& options) {
  auto const at_least = [](Index least, char const* name, Index value) {
    if (value < least)
      throw ConfigError(std::string("fit: ") + name + " is " + std::to_string(value) + "; it must be at least " +
                        std::to_string(least));
  };
  at_least(0, "epochs", options.epochs), at_least(0, "max_steps", options.max_steps);
  at_least(1, "accumulation", options.accumulation);
  at_least(0, "schedule.warmup_steps", options.schedule.warmup_steps);
  at_least(0, "schedule.total_steps", options.schedule.total_steps);
  if (options.schedule.total_steps > 0 && options.schedule.warmup_steps > options.schedule.total_steps)
    throw ConfigError("fit: schedule.warmup_steps is " + std::to_string(options.schedule.warmup_steps) +
                      "; it must be at most schedule.total_steps, which is " +
                      std::to_string(options.schedule.total_steps) + " and includes them");
  if (!(options.schedule.min_factor >= 0 && options.schedule.min_factor <= 1))
    throw ConfigError("fit: schedule.min_factor is " + std::to_string(options.schedule.min_factor) +
                      "; it must be at least 0 and at most 1");
  if (auto const kind = options.schedule.kind;
      options.schedule.min_factor > 0 &&
      (options.schedule.rule || (kind != optim::Schedule::Kind::cosine && kind != optim::Schedule::Kind::linear)))
    throw ConfigError("fit: schedule.min_factor is " + std::to_string(options.schedule.min_factor) +
                      ", and only cosine and linear end there: it would change nothing; give one of them as "
                      "schedule.kind, without a rule, or leave it out");
  at_least(0, "check_replicas_every", options.check_replicas_every);
  at_least(0, "evaluate_every_epochs", options.evaluate_every_epochs), at_least(0, "patience", options.patience);
  at_least(0, "evaluate_every_steps", options.evaluate_every_steps);
  at_least(0, "checkpoints.every", options.checkpoints.every),
      at_least(0, "checkpoints.keep", options.checkpoints.keep);
  at_least(0, "plateau.patience", options.plateau.patience);
  auto const below_one = [](char const* name, double value) {
    if (!(value >= 0 && value < 1))
      throw ConfigError(std::string("fit: plateau.") + name + " is " + std::to_string(value) +
                        "; it must be at least 0 and below 1");
  };
  below_one("factor", options.plateau.factor), below_one("min_factor", options.plateau.min_factor);
  if (!(options.clip_norm >= 0))
    throw ConfigError("fit: clip_norm is " + std::to_string(options.clip_norm) +
                      "; it must be at least 0, and 0 does not clip");
}

}}}  // namespace lockstep::train::detail
