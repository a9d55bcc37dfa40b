// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/trainer/detail/check_evaluation.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE BestValue MetricNames::best(std::string const& name) const {
  auto const found = std::find(names_.begin(), names_.end(), name);
  return found == names_.end() ? BestValue::largest : best_[static_cast<std::size_t>(found - names_.begin())];
}

LOCKSTEP_COLD_INLINE void MetricNames::add(std::string name, BestValue best) {
  names_.push_back(std::move(name));
  best_.push_back(best);
}

LOCKSTEP_COLD_INLINE std::string evaluation_label(std::string const& prefix) {
  return prefix.empty() ? "" : " (" + prefix.substr(0, prefix.size() - 1) + ")";
}

LOCKSTEP_COLD_INLINE void check_names(MetricNames const& metric_names, char const* what) {
  std::vector<std::string_view> names(log_columns.begin(), log_columns.end());
  names.insert(names.end(), metric_names.names().begin(), metric_names.names().end());
  NameTable known;  // a confusion matrix has millions of names
  for (auto const name : names)
    if (known.add([&](std::size_t i) { return names[i]; }) != NameTable::none)
      throw ConfigError(std::string(what) + ": a metric is called \"" + std::string(name) +
                        "\", a name that another metric or logged number has; give it another name()");
}

LOCKSTEP_COLD_INLINE void check_evaluation(MetricNames const& metric_names, bool has_evaluation,
                                           FitOptions const& options) {
  std::string known = "loss";
  bool is_known = options.best_by == known;
  check_names(metric_names, "fit");
  for (auto const& name : options.loss_parts)
    if (std::find(log_columns.begin(), log_columns.end(), name) != log_columns.end() ||
        std::count(options.loss_parts.begin(), options.loss_parts.end(), name) > 1)
      throw ConfigError("fit: loss_parts names \"" + name +
                        "\", a name that another part or logged number has; name each part once, and give it another "
                        "name in nn::named_loss if logs have that name");
  for (auto const& name : metric_names.names()) {
    is_known = is_known || name == options.best_by;
    known += ", " + name;
  }
  bool const evaluates = has_evaluation && (options.evaluate_every_epochs > 0 || options.evaluate_every_steps > 0);
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
  for (auto const* observer : options.observers) {
    if (observer == nullptr)
      throw ConfigError(
          "fit: options.observers holds a null pointer; leave out an observer that this rank does not have");
    if (observer->needs_evaluations() && !evaluates)
      throw ConfigError(
          "fit: an observer, such as train::KeepBest, would do nothing without evaluations, and there are none; pass "
          "one, let evaluate_every_epochs be at least 1, or leave the observer out");
  }
  if (!is_known)
    throw ConfigError("fit: evaluations are judged by \"" + options.best_by +
                      "\", which they do not measure; name one of " + known);
}

LOCKSTEP_COLD_INLINE void refuse_no_steps(std::string const& prefix, Index samples) {
  throw DataError("evaluate" + evaluation_label(prefix) +
                  ": there is nothing to evaluate on: " + std::to_string(samples) +
                  " samples give no step; check which samples the dataset found, or pass no evaluation");
}

LOCKSTEP_COLD_INLINE void refuse_shared_loader() {
  throw ConfigError(
      "fit: training and evaluation use one loader, which serves one of the two at a time; make a second one, if "
      "necessary for the same dataset");
}

}}}  // namespace lockstep::train::detail
