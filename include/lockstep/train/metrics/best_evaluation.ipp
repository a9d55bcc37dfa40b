// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/metrics/best_evaluation.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

LOCKSTEP_COLD_INLINE BestEvaluation::BestEvaluation(std::string best_by, BestValue of_metric, double min_delta)
    : best_by_(std::move(best_by)), sign_(of_metric == BestValue::largest ? 1 : -1), min_delta_(min_delta) {}

LOCKSTEP_COLD_INLINE bool BestEvaluation::add(EvaluationReport const& report) {
  auto const value = value_of(report);
  if (!value) return false;
  bool const finite = std::isfinite(*value) && std::isfinite(report.loss);
  bool const better = finite && (!any_ || *value > best_ + min_delta_);
  since_best_ = better ? 0 : since_best_ + 1;
  if (better) best_ = *value;
  any_ = any_ || better;
  return better;
}

LOCKSTEP_COLD_INLINE bool BestEvaluation::measures(EvaluationReport const& report) const {
  return value_of(report).has_value();
}

LOCKSTEP_COLD_INLINE std::optional<double> BestEvaluation::value_of(EvaluationReport const& report) const {
  if (best_by_ == "loss") return -report.loss;
  for (auto const& [name, value] : report.metrics)
    if (name == best_by_) return sign_ * value;
  return std::nullopt;
}

}}}  // namespace lockstep::train
