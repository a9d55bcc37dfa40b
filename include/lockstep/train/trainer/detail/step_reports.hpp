// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/optim/loss_scaler.hpp>
#include <lockstep/parallel/session.hpp>
#include <lockstep/train/logs/observer.hpp>
#include <lockstep/train/logs/run_record.hpp>
#include <lockstep/train/trainer/detail/fit_plan.hpp>
#include <lockstep/train/trainer/detail/recent_rate.hpp>
#include <lockstep/train/trainer/fit_options.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Makes the reports of steps. They are equal on all ranks.
class StepReports {
 public:
  /// Returns the report of the last step of `record`, which ended at time `now`.
  /// @throws Error if the loss scale is at its minimum and all steps since the last logged one were skipped
  [[nodiscard]] StepReport of(parallel::AnySession& session, FitPlan const& plan, RunRecord const& record,
                              FitOptions const& options, double loss, double rate, double now);

 private:
  void add_loss_scale(optim::LossScaler::State const& state, StepReport& report);

  optim::LossScaler::State before_;
  Index step_ = 0;
  RecentRate recent_;
  Index samples_ = 0;  // of the run, at the last report
};

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/trainer/detail/step_reports.ipp>
#endif
