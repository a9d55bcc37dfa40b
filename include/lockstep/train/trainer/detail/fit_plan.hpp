// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/train/checkpoint/checkpoint.hpp>
#include <lockstep/train/logs/run_record.hpp>
#include <lockstep/train/trainer/fit_options.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Plan of a fit's optimizer steps and their positions in the data. It is pure arithmetic, so a run can start at any
/// step. Steps and epochs count from the start of the fit, except where the names say trainer.
struct FitPlan {
  Index micro_steps = 0;    ///< in an epoch
  Index accumulation = 1;   ///< micro-steps in a step; an epoch's last step may have fewer
  Index micro_samples = 1;  ///< samples of all shards in a micro-step
  Index epoch_samples = 0;
  Index epochs = 0;       ///< of the whole fit, limited by Progress::max_total_steps
  Index steps = 0;        ///< of the whole fit, limited in the same way
  TrainerSteps before{};  ///< work of the trainer before this fit

  FitPlan(Index samples, Index micro_steps_, Index micro_samples_, Index accumulation_, Index epochs_, Index max_steps);

  [[nodiscard]] Index epoch_steps() const noexcept { return (micro_steps + accumulation - 1) / accumulation; }
  /// Returns the number of epochs for `count` steps.
  [[nodiscard]] Index epochs_of(Index count) const noexcept;
  /// These functions describe the step that follows `step` steps: its epoch, its epoch among the trainer's, its first
  /// micro-step, and one past its last. The trainer's epoch keys shuffling and random operations.
  [[nodiscard]] Index epoch(Index step) const noexcept { return step / std::max<Index>(1, epoch_steps()); }
  [[nodiscard]] Index trainer_epoch(Index step) const noexcept { return before.epochs + epoch(step); }
  [[nodiscard]] Index begin(Index step) const noexcept { return (step - epoch(step) * epoch_steps()) * accumulation; }
  [[nodiscard]] Index end(Index step) const noexcept { return std::min(micro_steps, begin(step) + accumulation); }
  /// Returns whether an epoch, or the fit, ends after `step` steps.
  [[nodiscard]] bool ends_epoch(Index step) const noexcept { return step >= steps || begin(step) == 0; }
  /// Returns whether an evaluation is due after `step` steps, at least one; `over` means that no step follows.
  [[nodiscard]] bool evaluates_after(Index step, bool over, FitOptions const& options) const noexcept;
  /// Returns the samples of `step` steps, and below their micro-steps. If a sampler chooses the batches, each counts as
  /// the mean batch of an epoch.
  [[nodiscard]] Index samples(Index step) const noexcept;
  /// Returns the trainer's work after `step` steps, at least one.
  [[nodiscard]] TrainerSteps trainer_steps(Index step) const noexcept;
  [[nodiscard]] Index all_micro_steps(Index step) const noexcept { return epoch(step) * micro_steps + begin(step); }
  /// Reserves memory for the seconds of the coming steps and epochs, within a limit for runs without end.
  void reserve(RunRecord& record) const;
};

/// Returns the plan of a fit. `samples` and `micro_steps` of an epoch are the loader's, `micro_samples` counts all
/// shards, and `record` is the fit's record at its start.
/// @throws DataError if there are no steps, ConfigError if the warm-up is longer than the fit
[[nodiscard]] FitPlan plan_of(Index samples, Index micro_steps, Index micro_samples, RunRecord const& record,
                              FitOptions const& options);

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/trainer/detail/fit_plan.ipp>
#endif
