// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/shortest.hpp>
#include <lockstep/train/trainer/detail/check_options.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE void check_options(FitOptions const& options) {
  describe(options).check_ranges();
  if (options.schedule.total_steps > 0 && options.schedule.warmup_steps > options.schedule.total_steps)
    throw ConfigError("fit: schedule.warmup_steps is " + std::to_string(options.schedule.warmup_steps) +
                      "; it must be at most schedule.total_steps, which is " +
                      std::to_string(options.schedule.total_steps) + " and includes them");
  if (auto const kind = options.schedule.kind;
      options.schedule.min_factor > 0 &&
      (options.schedule.rule || (kind != optim::Schedule::Kind::cosine && kind != optim::Schedule::Kind::linear)))
    throw ConfigError("fit: schedule.min_factor is " + shortest(options.schedule.min_factor) +
                      ", and only cosine and linear end there: it would change nothing; give one of them as "
                      "schedule.kind, without a rule, or leave it out");
  if (options.min_delta > 0 && options.patience == 0 && options.plateau.patience == 0)
    throw ConfigError("fit: min_delta is " + shortest(options.min_delta) +
                      ", and neither patience nor plateau.patience is set: it would change nothing; set one of them");
}

}}}  // namespace lockstep::train::detail
