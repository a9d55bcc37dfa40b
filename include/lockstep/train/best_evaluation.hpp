// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <string>
#include <utility>

#include <lockstep/core/index.hpp>
#include <lockstep/train/observer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Which of a metric's values is the best one.
enum class BestValue { largest, smallest };

/// Which of a run's evaluations is the best: that of the least loss, or of a metric's best value. Of equal ones the
/// first counts, and one that is no number (NaN) is better than none.
class BestEvaluation {
 public:
  /// @param judge_by "loss", or the name of a metric   @param of_metric of that metric; of the loss it is the smallest
  explicit BestEvaluation(std::string judge_by, BestValue of_metric = BestValue::largest)
      : judge_by_(std::move(judge_by)), sign_(of_metric == BestValue::largest ? 1 : -1) {}

  /// Whether the next evaluation is better than all before it.
  /// @pre the report has a metric of that name
  bool take(EvaluationReport const& report) {
    auto const value = value_of(report);
    bool const better = !any_ || (std::isnan(best_) ? !std::isnan(value) : value > best_);
    since_ = better ? 0 : since_ + 1;
    if (better) best_ = value;
    any_ = true;
    return better;
  }
  /// Evaluations after the best one.
  [[nodiscard]] Index since() const noexcept { return since_; }

 private:
  /// More is better.
  [[nodiscard]] double value_of(EvaluationReport const& report) const {
    for (auto const& [name, value] : report.metrics)
      if (name == judge_by_) return sign_ * value;
    return -report.loss;
  }

  std::string judge_by_;
  double sign_;
  double best_ = 0;
  Index since_ = 0;
  bool any_ = false;
};

}}}  // namespace lockstep::train
