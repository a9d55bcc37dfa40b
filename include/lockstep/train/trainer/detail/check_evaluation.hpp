// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/name_table.hpp>
#include <lockstep/data/split.hpp>
#include <lockstep/train/detail/expect_end.hpp>
#include <lockstep/train/detail/log_columns.hpp>
#include <lockstep/train/metrics/best_evaluation.hpp>
#include <lockstep/train/trainer/evaluation.hpp>
#include <lockstep/train/trainer/fit_options.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Returns which value of a metric is the best one.
template <class AnyMetric>
[[nodiscard]] constexpr BestValue direction_of() noexcept {
  if constexpr (requires { typename std::bool_constant<AnyMetric::higher_is_better>; })
    if (!AnyMetric::higher_is_better) return BestValue::smallest;
  return BestValue::largest;
}

/// Names of the values of a fit's evaluations, including the losses of all evaluations after the first.
class MetricNames {
 public:
  template <class Evaluation>
  explicit MetricNames(Evaluation const& evaluations) {
    each_evaluation(evaluations, [&](std::string const& prefix, auto const& evaluation) {
      if (!prefix.empty()) add(prefix + "loss", BestValue::smallest);
      auto const each_of = [&]<class AnyMetric>(AnyMetric const& metric) {
        each_value(metric, [&](std::string const& name, double) { add(prefix + name, direction_of<AnyMetric>()); });
      };
      std::apply([&](auto const&... metric) { (each_of(metric), ...); }, evaluation.metrics);
    });
  }

  [[nodiscard]] std::vector<std::string> const& names() const noexcept { return names_; }
  /// Returns the best value of that name. For the loss of the first evaluation the result has no meaning.
  [[nodiscard]] BestValue best(std::string const& name) const;

 private:
  void add(std::string name, BestValue best);

  std::vector<std::string> names_;
  std::vector<BestValue> best_;
};

/// Returns the name of an evaluation for messages, as " (test)"; "" for the first one.
[[nodiscard]] std::string evaluation_label(std::string const& prefix);

/// @throws DataError for an evaluation without steps
[[noreturn, gnu::cold]] void refuse_no_steps(std::string const& prefix, Index samples);
/// @throws ConfigError for a loader that training and evaluation share
[[noreturn, gnu::cold]] void refuse_shared_loader();

/// Returns the evaluation's steps, at least 1.
/// @throws DataError if there are none, as a mean over nothing would look perfect; ConfigError if they have no end
template <class Loader, class... Metrics>
Index steps_of(std::string const& prefix, Evaluation<Loader, Metrics...> const& evaluation, data::Split const& split) {
  if (!ends(evaluation.loader)) refuse_endless("evaluate" + evaluation_label(prefix));
  auto const steps = exact_steps(evaluation.loader, split);
  if (steps == 0) refuse_no_steps(prefix, evaluation.loader.samples());
  return steps;
}

/// Checks that names of results are unique, as they are logged by name.   @throws ConfigError
void check_names(MetricNames const& metric_names, char const* what);

/// Checks the loaders before training starts.   @throws ConfigError
template <class Loader, class Evaluation>
void check_loaders(Loader const& loader, Evaluation const& evaluation, data::Split const& split, Index max_steps) {
  if (max_steps == 0) expect_end("fit", loader, ", or set max_steps");
  each_evaluation(evaluation, [&](std::string const& prefix, auto const& each) {
    if (static_cast<void const*>(&each.loader) == &loader) refuse_shared_loader();
    steps_of(prefix, each, split);
  });
}
/// Checks the evaluations before training starts; `has_evaluation` says whether the fit has an evaluation.
void check_evaluation(MetricNames const& metric_names, bool has_evaluation, FitOptions const& options);

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/trainer/detail/check_evaluation.ipp>
#endif
