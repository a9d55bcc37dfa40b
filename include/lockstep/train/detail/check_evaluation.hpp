// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/data/split.hpp>
#include <lockstep/train/best_evaluation.hpp>
#include <lockstep/train/detail/log_columns.hpp>
#include <lockstep/train/evaluation.hpp>

namespace lockstep::inline LOCKSTEP_ABI::train::detail {

/// What an evaluation counts, by name.
template <class Evaluation>
[[nodiscard]] std::vector<std::string> metric_names([[maybe_unused]] Evaluation const& evaluation) {
  std::vector<std::string> names;
  if constexpr (!std::is_same_v<Evaluation, NoEvaluation>)
    std::apply(
        [&](auto const&... metric) {
          (each_value(metric, [&](std::string const& name, double) { names.push_back(name); }), ...);
        },
        evaluation.metrics);
  return names;
}

/// Which value of the metric of that name is the best one; of the loss, which is none of them, it does not matter.
template <class Evaluation>
[[nodiscard]] BestValue best_value([[maybe_unused]] Evaluation const& evaluation,
                                   [[maybe_unused]] std::string const& name) {
  auto best = BestValue::largest;
  if constexpr (!std::is_same_v<Evaluation, NoEvaluation>) {
    auto const ask = [&]<class M>(M const& metric) {
      if constexpr (requires { M::higher_is_better; })
        each_value(metric, [&](std::string const& its, double) {
          if (name == its && !M::higher_is_better) best = BestValue::smallest;
        });
    };
    std::apply([&](auto const&... metric) { (ask(metric), ...); }, evaluation.metrics);
  }
  return best;
}

/// A mean over nothing would look like a perfect one.
/// @returns the evaluation's steps, at least 1
template <class Loader, class... Metrics>
Index steps_of(Evaluation<Loader, Metrics...> const& evaluation, data::Split const& split) {
  auto const steps = evaluation.loader.steps(split);
  if (steps == 0)
    throw DataError(
        "evaluate: there is nothing to evaluate on: " + std::to_string(evaluation.loader.samples()) +
        " samples give no step; look at what the dataset found, leave the loader's `tail` at exact, or pass "
        "no evaluation");
  return steps;
}

/// Before anything is trained.
template <class Loader, class Evaluation, class FitOptions>
void check_evaluation(Loader const& loader, Evaluation const& evaluation, FitOptions const& options,
                      data::Split const& split) {
  std::string known = "loss";
  bool judges = options.judge_by == known;
  if constexpr (!std::is_same_v<Evaluation, NoEvaluation>) {
    if (static_cast<void const*>(&evaluation.loader) == &loader)
      throw ConfigError(
          "fit: the loader that trains evaluates too, and a loader delivers for one of the two at a time; make a "
          "second one, if need be of the same dataset");
    steps_of(evaluation, split);
  }
  std::vector<std::string> taken(log_columns.begin(), log_columns.end());
  for (auto const& name : metric_names(evaluation)) {
    if (std::find(taken.begin(), taken.end(), name) != taken.end())
      throw ConfigError("fit: a metric is called \"" + name +
                        "\", as another one or a number that is logged beside it; give it another name()");
    taken.push_back(name);
    judges = judges || name == options.judge_by;
    known += ", " + name;
  }
  bool const evaluates = !std::is_same_v<Evaluation, NoEvaluation> &&
                         (options.evaluate_every_epochs > 0 || options.evaluate_every_steps > 0);
  if (options.patience > 0 && !evaluates)
    throw ConfigError(
        "fit: patience is " + std::to_string(options.patience) +
        ", and there is no evaluation to wait for; pass one, and let evaluate_every_epochs be at least 1");
  if (options.plateau.patience > 0 && !evaluates)
    throw ConfigError(
        "fit: plateau.patience is " + std::to_string(options.plateau.patience) +
        ", and there is no evaluation to wait for; pass one, and let evaluate_every_epochs be at least 1");
  if (options.evaluate_every_steps > 0 && !evaluates)
    throw ConfigError("fit: evaluate_every_steps is " + std::to_string(options.evaluate_every_steps) +
                      ", and there is no evaluation; pass one, or leave it out");
  for (auto const* observer : options.observers)
    if (observer->needs_evaluations() && !evaluates)
      throw ConfigError(
          "fit: an observer, such as train::KeepBest, would do nothing without evaluations, and there are none; pass "
          "one, let evaluate_every_epochs be at least 1, or leave the observer out");
  if (!judges)
    throw ConfigError("fit: evaluations are judged by \"" + options.judge_by +
                      "\", which they do not count; name one of " + known);
}

}  // namespace lockstep::inline LOCKSTEP_ABI::train::detail
