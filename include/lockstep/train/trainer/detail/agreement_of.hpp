// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include <lockstep/data/split.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/optim/decay_rule.hpp>
#include <lockstep/optim/optimizer.hpp>
#include <lockstep/optim/rate_rule.hpp>
#include <lockstep/parallel/agreement.hpp>
#include <lockstep/train/trainer/detail/check_evaluation.hpp>
#include <lockstep/train/trainer/evaluation.hpp>
#include <lockstep/train/trainer/fit_options.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Returns the settings of a rank's updates.
template <class Optimizer>
[[nodiscard]] parallel::Agreement agreement_of(Optimizer const& optimizer, nn::ParameterLayout const& layout,
                                               std::uint64_t seed) {
  parallel::Agreement agreement;
  auto const each = [&](std::string_view name, auto value) { agreement.add("optimizer: " + std::string(name), value); };
  agreement.add("seed", std::to_string(seed));
  each("learning rate", static_cast<double>(optimizer.learning_rate));
  optim::describe(optimizer, each);
  if constexpr (optim::parts<Optimizer>() > 1)
    for (auto const& entry : layout.entries())
      each("number of the optimizer of " + entry.name, Index{optim::part_of(optimizer, entry)});
  for (auto const& entry : layout.entries()) each("decay of " + entry.name, optim::decay_of(optimizer, entry));
  for (auto const& entry : layout.entries()) each("rate of " + entry.name, optim::rate_of(optimizer, entry));
  return agreement;
}

/// Adds the order of samples.
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
void add_options(parallel::Agreement& agreement, FitOptions const& options, MetricNames const& metric_names);

/// Returns the options of a fit with its data and its evaluations.
template <class Loader, class Evaluation>
[[nodiscard]] parallel::Agreement agreement_of(FitOptions const& options, Loader const& loader,
                                               Evaluation const& evaluation, MetricNames const& metric_names,
                                               Index batch_size) {
  parallel::Agreement agreement;
  for (auto const& [name, value] : options.equal_on_all_ranks) agreement.add(name, value);
  add_order(agreement, "data", loader);
  agreement.add("batch size", batch_size);
  if constexpr (requires { loader.options().tail; }) {
    auto const tail = loader.options().tail;
    agreement.add("tail", tail == data::Tail::exact ? "exact" : tail == data::Tail::pad ? "pad" : "drop");
  }
  add_evaluation(agreement, evaluation);
  add_options(agreement, options, metric_names);
  return agreement;
}

/// Adds some samples. All contents would need a pass over all data.
template <class Loader>
void add_samples(parallel::Agreement& agreement, std::string const& what, Loader const& loader) {
  if constexpr (requires { loader.sample_hashes(); })
    for (auto const& [index, content] : loader.sample_hashes())
      agreement.add("sample " + std::to_string(index) + " of the " + what, content);
}

/// Compares settings between ranks, and samples of the loaders: ranks divide the numbers of samples, so that some would
/// be seen twice, and others never, if ranks numbered them in different orders. Reads no sample for the only rank.
/// @collective   @throws CollectiveMismatch on all ranks if one of them has another setting, or sample at an index
template <class Session, class Evaluation, class... Loader>
[[gnu::cold]] void check_agreement_and_samples(Session& session, parallel::Agreement settings, data::Split const& split,
                                               Evaluation const& evaluations, Loader const&... loader) {
  if (split.all != split.count) {
    settings.set_remedy("all ranks need the same samples in the same order: sort the names of listed files");
    (add_samples(settings, "data", loader), ...);
    each_evaluation(evaluations, [&](std::string const& prefix, auto const& evaluation) {
      add_samples(settings, prefix + "evaluation", evaluation.loader);
    });
  }
  session.check_agreement(settings);
}

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/trainer/detail/agreement_of.ipp>
#endif
