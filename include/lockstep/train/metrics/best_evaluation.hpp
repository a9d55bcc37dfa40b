// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include <lockstep/core/index.hpp>
#include <lockstep/train/logs/observer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Best value of a metric.
enum class BestValue {
  largest,   ///< as for accuracy
  smallest,  ///< as for errors
};

/// Finds the best evaluation of a run: the one with the smallest loss, or with a metric's best value. The first of
/// equal values wins. An evaluation whose loss or value is NaN or infinite is never the best.
class BestEvaluation {
 public:
  /// @param best_by "loss", or the name of a metric
  /// @param of_metric the metric's best value; ignored for the loss, whose best value is the smallest
  /// @param min_delta least improvement: an evaluation is better only if it exceeds the best value by more than this
  explicit BestEvaluation(std::string best_by, BestValue of_metric = BestValue::largest, double min_delta = 0);

  /// Records an evaluation. Returns whether it is better than all before it. One that was not measured does not count.
  bool add(EvaluationReport const& report);
  /// Returns whether the evaluation has the value to compare by. One before a resume lacks a metric that is new.
  [[nodiscard]] bool measures(EvaluationReport const& report) const;

  /// Returns the number of evaluations after the best one, or of all if none is finite.
  [[nodiscard]] Index evaluations_since_best() const noexcept { return since_best_; }

 private:
  /// Returns the value to compare by. Larger is better.
  [[nodiscard]] std::optional<double> value_of(EvaluationReport const& report) const;

  std::string best_by_;
  double sign_, min_delta_;
  double best_ = 0;
  Index since_best_ = 0;
  bool any_ = false;
};

}}}  // namespace lockstep::train

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/metrics/best_evaluation.ipp>
#endif
