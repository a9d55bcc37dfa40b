// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdio>
#include <type_traits>

#include <lockstep/core/error.hpp>
#include <lockstep/core/progress.hpp>
#include <lockstep/train/logs/progress_bar.hpp>
#include <lockstep/train/trainer/evaluation.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

/// Implements --evaluate: evaluates the trainer's parameters and prints the result.   @collective
/// @throws ConfigError if the program has no evaluation
template <class Trainer, class Evaluation>
[[gnu::cold]] void evaluate_alone(Trainer& trainer, Evaluation const& evaluation, bool is_main_rank) {
  if constexpr (std::is_same_v<Evaluation, train::NoEvaluation>) {
    throw ConfigError("--evaluate: this program has no evaluation; leave it out");
  } else {
    Progress progress(is_main_rank ? stdout : nullptr);
    auto const report = trainer.evaluate(evaluation, progress.steps("evaluating"));
    progress.end();
    if (!is_main_rank) return;
    std::printf("%s\n", train::ProgressBar::describe(report).c_str());
    std::fflush(stdout);
  }
}

}}}  // namespace lockstep::app::detail
