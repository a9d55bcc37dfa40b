// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/index.hpp>
#include <lockstep/optim/plateau.hpp>
#include <lockstep/train/logs/observer.hpp>
#include <lockstep/train/metrics/best_evaluation.hpp>
#include <lockstep/train/trainer/fit_options.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Decisions that follow from a fit's evaluations. Evaluations are equal on all ranks, and so are the decisions.
class Judge {
 public:
  /// Takes the best value of `options.judge_by`.
  Judge(BestValue best, FitOptions const& options)
      : best_(options.judge_by, best), plateau_(options.plateau), patience_(options.patience) {}

  /// Records an evaluation and sets its `best`.
  void take(EvaluationReport& report) {
    report.best = best_.take(report);
    plateau_.record(report.best);
    if (report.best) best_step_ = report.step;
  }
  /// Returns the step of the best evaluation, or 0 without any.
  [[nodiscard]] Index best() const noexcept { return best_step_; }
  [[nodiscard]] bool ends_run() const noexcept { return patience_ > 0 && best_.since() >= patience_; }
  /// Returns the plateau's learning-rate multiplier.
  [[nodiscard]] double factor() const noexcept { return plateau_.value(); }

 private:
  BestEvaluation best_;
  optim::PlateauFactor plateau_;
  Index patience_, best_step_ = 0;
};

}}}  // namespace lockstep::train::detail
