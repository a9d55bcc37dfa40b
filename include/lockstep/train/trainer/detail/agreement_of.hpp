// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/optim/rate_rule.hpp>
#include <lockstep/parallel/agreement.hpp>
#include <lockstep/train/trainer/detail/check_evaluation.hpp>
#include <lockstep/train/trainer/evaluation.hpp>
#include <lockstep/train/trainer/fit_options.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Whether a session's replicas are on several ranks, which may have been started with different arguments.
template <class Session>
concept ChecksAgreement = requires(Session& session, parallel::Agreement const& agreement) {
  session.check_agreement(agreement);
};

/// Returns the settings of a rank's updates.
template <class Optimizer>
[[nodiscard]] parallel::Agreement agreement_of(Optimizer const& optimizer, nn::ParameterLayout const& layout,
                                               std::uint64_t seed) {
  parallel::Agreement agreement;
  auto const each = [&](std::string_view name, auto value) { agreement.add("optimizer: " + std::string(name), value); };
  agreement.add("seed", std::to_string(seed));
  each("learning rate", static_cast<double>(optimizer.learning_rate));
  if constexpr (requires { optimizer.describe(each); }) optimizer.describe(each);
  if constexpr (requires { optimizer.decays; })
    for (auto const& entry : layout.entries())
      each("decay of " + entry.name, static_cast<double>(optimizer.decays(entry.name, entry.shape)));
  if constexpr (requires { optimizer.rates; })
    for (auto const& entry : layout.entries()) each("rate of " + entry.name, optim::rate_of(optimizer, entry));
  return agreement;
}

/// Adds the order of samples. It does not add their contents: that could need a pass over all data, and paths of files
/// may differ between hosts.
template <class Loader>
void add_order(parallel::Agreement& agreement, std::string const& what, Loader const& loader) {
  agreement.add("samples of the " + what, loader.samples());
  if constexpr (requires { loader.order_fingerprint(); })
    agreement.add("fingerprint of the order of the " + what, loader.order_fingerprint());
  if constexpr (requires { loader.options().seed; })
    agreement.add("seed of the samples of the " + what, std::to_string(loader.options().seed));
}

/// Adds the data of a rank's evaluations.
template <class Evaluation>
void add_evaluation(parallel::Agreement& agreement, Evaluation const& evaluations) {
  each_evaluation(evaluations, [&](std::string const& prefix, auto const& evaluation) {
    auto const what = prefix + "evaluation";
    add_order(agreement, what, evaluation.loader);
    if constexpr (requires { evaluation.loader.options().batch_size; })
      agreement.add("batch size of the " + what, Index{evaluation.loader.options().batch_size});
  });
}
template <class Evaluation>
requires is_evaluation<Evaluation>
[[nodiscard]] parallel::Agreement agreement_of(Evaluation const& evaluation) {
  parallel::Agreement agreement;
  add_evaluation(agreement, evaluation);
  return agreement;
}

/// Adds the options of a rank's fit.
inline void add_options(parallel::Agreement& agreement, FitOptions const& options, MetricNames const& metric_names) {
  for (auto const& name : metric_names.names()) agreement.add("metric of the evaluation", name);
  agreement.add("epochs", options.epochs);
  agreement.add("largest number of steps", options.max_steps);
  agreement.add("batches in a step", options.accumulation);
  agreement.add("largest gradient norm", options.clip_norm);
  agreement.add("start of the loss scale", options.loss_scaler.start);
  agreement.add("growth of the loss scale", options.loss_scaler.growth);
  agreement.add("backoff of the loss scale", options.loss_scaler.backoff);
  agreement.add("steps until the loss scale grows", options.loss_scaler.growth_interval);
  agreement.add("steps between checks of replicas", options.check_replicas_every);
  agreement.add("epochs between evaluations", options.evaluate_every_epochs);
  agreement.add("steps between evaluations", options.evaluate_every_steps);
  agreement.add("patience", options.patience);
  agreement.add("patience of the plateau", options.plateau.patience);
  agreement.add("factor of the plateau", options.plateau.factor);
  agreement.add("least factor of the plateau", options.plateau.min_factor);
  agreement.add("timed products", Index{options.timed_products});
  agreement.add("dry run", Index{options.dry_run});
  agreement.add("trace", Index{options.trace != nullptr});
  agreement.add("measure of the best evaluation", options.best_by);
  agreement.add("steps of warm-up", options.schedule.warmup_steps);
  agreement.add("steps of the schedule", options.schedule.total_steps);
  agreement.add("kind of schedule", static_cast<Index>(options.schedule.kind));
  agreement.add("least factor of the schedule", options.schedule.min_factor);
  agreement.add("schedule has a rule", Index{options.schedule.rule != nullptr});
}

/// Returns the options of a fit with its data and its evaluations.
template <class Loader, class Evaluation>
[[nodiscard]] parallel::Agreement agreement_of(FitOptions const& options, Loader const& loader,
                                               Evaluation const& evaluation, MetricNames const& metric_names,
                                               Index batch_size) {
  parallel::Agreement agreement;
  for (auto const& [name, value] : options.equal_on_all_ranks) agreement.add(name, value);
  add_order(agreement, "data", loader);
  agreement.add("batch size", batch_size);
  add_evaluation(agreement, evaluation);
  add_options(agreement, options, metric_names);
  return agreement;
}

}}}  // namespace lockstep::train::detail
