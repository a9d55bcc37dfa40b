// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/index.hpp>
#include <lockstep/optim/plateau.hpp>
#include <lockstep/train/best_evaluation.hpp>
#include <lockstep/train/fit_options.hpp>
#include <lockstep/train/observer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// What a fit's evaluations decide. They are alike on all ranks, and so is this.
class Judge {
 public:
  /// `best` is the best value of what the options judge by.
  Judge(BestValue best, FitOptions const& options)
      : best_(options.judge_by, best), plateau_(options.plateau), patience_(options.patience) {}

  /// The next evaluation. Says in it whether it is the best so far.
  void take(EvaluationReport& report) {
    report.best = best_.take(report);
    plateau_.take(report.best);
    if (report.best) best_step_ = report.step;
  }
  /// The step of the best one; 0 without any.
  [[nodiscard]] Index best() const noexcept { return best_step_; }
  [[nodiscard]] bool ends_run() const noexcept { return patience_ > 0 && best_.since() >= patience_; }
  /// On the learning rate.
  [[nodiscard]] double factor() const noexcept { return plateau_.value(); }

 private:
  BestEvaluation best_;
  optim::PlateauFactor plateau_;
  Index patience_, best_step_ = 0;
};

}}}  // namespace lockstep::train::detail
