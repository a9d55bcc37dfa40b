// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/train/checkpoint.hpp>
#include <lockstep/train/fit_options.hpp>
#include <lockstep/train/run_record.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// The optimizer steps of a fit, and where each lies in the data: arithmetic, so that a run may begin at any of them.
/// Steps and epochs are those of the fit, but where it says that they are the trainer's.
struct FitPlan {
  Index micro_steps = 0;    ///< in an epoch
  Index accumulation = 1;   ///< of them in a step; an epoch's last one may have fewer
  Index micro_samples = 1;  ///< of all shards in a micro-step
  Index epoch_samples = 0;
  Index epochs = 0;       ///< of the whole fit, if it can have as many
  Index steps = 0;        ///< likewise
  TrainerSteps before{};  ///< what the trainer had done

  FitPlan(Index samples, Index micro_steps_, Index micro_samples_, Index accumulation_, Index epochs_, Index max_steps)
      : micro_steps(micro_steps_),
        accumulation(accumulation_),
        micro_samples(micro_samples_),
        epoch_samples(std::min(samples, micro_steps * micro_samples)),
        epochs(std::min(epochs_ > 0 ? epochs_ : epochs_of(max_steps),
                        Progress::most_steps / std::max<Index>(1, epoch_steps()))),
        steps(std::min(epoch_steps() * epochs, max_steps > 0 ? max_steps : Progress::most_steps)) {}

  [[nodiscard]] Index epoch_steps() const noexcept { return (micro_steps + accumulation - 1) / accumulation; }
  /// So many as hold so many steps.
  [[nodiscard]] Index epochs_of(Index count) const noexcept {
    auto const each = std::max<Index>(1, epoch_steps());
    return count / each + (count % each > 0 ? 1 : 0);
  }
  /// The epoch of the step that comes after `step` others, its number among the trainer's, which orders are shuffled by
  /// and random operations keyed with, and the step's first micro-step and the one behind its last.
  [[nodiscard]] Index epoch(Index step) const noexcept { return step / std::max<Index>(1, epoch_steps()); }
  [[nodiscard]] Index trainer_epoch(Index step) const noexcept { return before.epochs + epoch(step); }
  [[nodiscard]] Index begin(Index step) const noexcept { return (step - epoch(step) * epoch_steps()) * accumulation; }
  [[nodiscard]] Index end(Index step) const noexcept { return std::min(micro_steps, begin(step) + accumulation); }
  /// Whether an epoch, or the fit, is over after so many steps.
  [[nodiscard]] bool ends_epoch(Index step) const noexcept { return step >= steps || begin(step) == 0; }
  /// Whether the run is evaluated after so many steps, at least one; `over`: there will be no more.
  [[nodiscard]] bool evaluates_after(Index step, bool over, FitOptions const& options) const noexcept {
    if (options.evaluate_every_steps > 0) return over || step % options.evaluate_every_steps == 0;
    return ends_epoch(step) && options.evaluate_every_epochs > 0 &&
           (over || (epoch(step - 1) + 1) % options.evaluate_every_epochs == 0);
  }
  /// Samples that so many steps have seen, and their micro-steps. Where a sampler has chosen the batches, which hold
  /// `micro_samples` at most, each counts as the mean.
  [[nodiscard]] Index samples(Index step) const noexcept {
    bool const alike = (micro_steps - 1) * micro_samples < epoch_samples;
    return epoch(step) * epoch_samples +
           (alike ? begin(step) * micro_samples : begin(step) * epoch_samples / micro_steps);
  }
  /// What the trainer has done after so many steps, at least one.
  [[nodiscard]] TrainerSteps trainer_steps(Index step) const noexcept {
    return {before.steps + step, trainer_epoch(step - 1) + 1};
  }
  [[nodiscard]] Index all_micro_steps(Index step) const noexcept { return epoch(step) * micro_steps + begin(step); }
  /// For the seconds of all steps and epochs to come; of a run that may have no end, for many.
  void make_room(RunRecord& record) const {
    auto const left = std::min(steps - record.steps, Index{1} << 16);
    record.step_seconds.reserve(static_cast<std::size_t>(left));
    record.epoch_seconds.reserve(static_cast<std::size_t>(std::min(epochs, left)));
  }
};

/// `samples`, and micro-steps of an epoch, as a loader has them, and the samples of all shards in one; of a fit that
/// has this record at its beginning.
/// @throws DataError when there is nothing to train on, ConfigError when the learning rate would rise for longer than
/// the fit has steps
[[nodiscard]] inline FitPlan plan_of(Index samples, Index micro_steps, Index micro_samples, RunRecord const& record,
                                     FitOptions const& options) {
  if (micro_steps == 0)
    throw DataError("fit: there is nothing to train on: " + std::to_string(samples) +
                    " samples make no step of batches of " + std::to_string(record.batch_size) + " for each of " +
                    std::to_string(record.world_size * record.devices) +
                    " devices; look at what the dataset found, or leave the loader's `tail` at exact");
  FitPlan const plan(samples, micro_steps, micro_samples, options.accumulation, options.epochs, options.max_steps);
  auto const& schedule = options.schedule;
  if (schedule.total_steps == 0 && schedule.warmup_steps > plan.steps)
    throw ConfigError("fit: schedule.warmup_steps is " + std::to_string(schedule.warmup_steps) + ", and the fit has " +
                      std::to_string(plan.steps) +
                      " steps, so that the learning rate would never be reached; warm up for fewer, or, in a part of a "
                      "longer training, give schedule.total_steps of all of it");
  return plan;
}

}}}  // namespace lockstep::train::detail
