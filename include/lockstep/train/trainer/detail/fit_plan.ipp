// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/trainer/detail/fit_plan.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE FitPlan::FitPlan(Index samples, Index micro_steps_, Index micro_samples_, Index accumulation_,
                                      Index epochs_, Index max_steps)
    : micro_steps(micro_steps_),
      accumulation(accumulation_),
      micro_samples(micro_samples_),
      epoch_samples(std::min(samples, micro_steps * micro_samples)),
      epochs(std::min(epochs_ > 0 ? epochs_ : epochs_of(max_steps),
                      Progress::max_total_steps / std::max<Index>(1, epoch_steps()))),
      steps(std::min(epoch_steps() * epochs, max_steps > 0 ? max_steps : Progress::max_total_steps)) {}

LOCKSTEP_INLINE Index FitPlan::epochs_of(Index count) const noexcept {
  auto const each = std::max<Index>(1, epoch_steps());
  return count / each + (count % each > 0 ? 1 : 0);
}

LOCKSTEP_INLINE bool FitPlan::evaluates_after(Index step, bool over, FitOptions const& options) const noexcept {
  if (options.evaluate_every_steps > 0) return over || step % options.evaluate_every_steps == 0;
  return ends_epoch(step) && options.evaluate_every_epochs > 0 &&
         (over || (epoch(step - 1) + 1) % options.evaluate_every_epochs == 0);
}

LOCKSTEP_INLINE Index FitPlan::samples(Index step) const noexcept {
  bool const has_equal_batches = (micro_steps - 1) * micro_samples < epoch_samples;
  return epoch(step) * epoch_samples +
         (has_equal_batches ? begin(step) * micro_samples : begin(step) * epoch_samples / micro_steps);
}

LOCKSTEP_INLINE TrainerSteps FitPlan::trainer_steps(Index step) const noexcept {
  return {before.steps + step, trainer_epoch(step - 1) + 1};
}

LOCKSTEP_COLD_INLINE void FitPlan::reserve(RunRecord& record) const {
  auto const left = std::min(steps - record.steps, Index{1} << 16);
  record.step_seconds.reserve(static_cast<std::size_t>(left));
  record.epoch_seconds.reserve(static_cast<std::size_t>(std::min(epochs, left)));
}

LOCKSTEP_COLD_INLINE FitPlan plan_of(Index samples, Index micro_steps, Index micro_samples, RunRecord const& record,
                                     FitOptions const& options) {
  if (micro_steps == 0)
    throw DataError("fit: there is nothing to train on: " + std::to_string(samples) +
                    " samples make no step of batches of " + std::to_string(record.batch_size) + " for each of " +
                    std::to_string(record.world_size * record.devices) +
                    " devices; check which samples the dataset found, or leave the loader's `tail` at exact");
  FitPlan const plan(samples, micro_steps, micro_samples, options.accumulation, options.epochs, options.max_steps);
  auto const& schedule = options.schedule;
  if (schedule.total_steps == 0 && schedule.warmup_steps > plan.steps)
    throw ConfigError(
        "fit: schedule.warmup_steps is " + std::to_string(schedule.warmup_steps) + ", and the fit has " +
        std::to_string(plan.steps) +
        " steps, so that the learning rate would never be reached; warm up for fewer, or, for a part of a "
        "longer training, set schedule.total_steps to the steps of the whole training");
  return plan;
}

}}}  // namespace lockstep::train::detail
