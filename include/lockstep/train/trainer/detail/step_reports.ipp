// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/trainer/detail/step_reports.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_INLINE StepReport StepReports::of(parallel::AnySession& session, FitPlan const& plan, RunRecord const& record,
                                           FitOptions const& options, double loss, double rate, double now) {
  auto const before = std::exchange(samples_, record.samples);
  recent_.add(static_cast<double>(record.samples - (before > 0 ? before : record.samples_before)),
              record.step_seconds.back());
  StepReport report{.step = record.steps,
                    .steps = plan.steps,
                    .epoch = plan.epoch(record.steps - 1),
                    .loss = loss,
                    .learning_rate = rate,
                    .samples = record.samples,
                    .seconds = now - record.run_began,
                    .samples_per_second = recent_.value()};
  if (options.clip_norm > 0) report.gradient_norm = session.gradient_norm();
  if (session.kind().scales_loss && report.is_logged()) add_loss_scale(session.loss_scale(), report);
  return report;
}

LOCKSTEP_INLINE void StepReports::add_loss_scale(optim::LossScaler::State const& state, StepReport& report) {
  report.loss_scale = static_cast<double>(state.scale);
  report.skipped_steps = state.skipped;
  constexpr auto least = optim::LossScaler::least;
  bool const all = before_.scale == least && state.skipped - before_.skipped == report.step - step_;
  if (all && state.scale == least)
    throw Error("training: gradients in float16 are not finite although the loss scale is down at 1, so that " +
                std::to_string(state.skipped) + " steps were skipped, the last of them step " +
                std::to_string(report.step) +
                "; scale inputs and targets down, or store activations as bfloat16, or as float32, and send gradients "
                "as either, if they are sent as float16");
  before_ = state;
  step_ = report.step;
}

}}}  // namespace lockstep::train::detail
