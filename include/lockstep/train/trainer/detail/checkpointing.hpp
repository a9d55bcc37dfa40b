// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include <lockstep/core/clock.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/data/split.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/parallel/session.hpp>
#include <lockstep/train/checkpoint/checkpoint.hpp>
#include <lockstep/train/detail/check_finite_parameters.hpp>
#include <lockstep/train/logs/run_record.hpp>
#include <lockstep/train/trainer/detail/any_loader.hpp>
#include <lockstep/train/trainer/detail/fit_plan.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Loads and saves the checkpoints of one fit. All arguments of the constructor must outlive it.
class Checkpointing {
 public:
  Checkpointing(Checkpoints const& options, parallel::AnySession& session, nn::ParameterLayout const& layout,
                std::uint64_t seed, AnyLoader const& loader, data::Split const& split, FitPlan& plan,
                std::string best_by);

  /// Resumes from the checkpoint that the first rank names, if any. Call it before `save_if_due`: all ranks learn here
  /// when to save. The plan then has the trainer's work before the fit that saved the checkpoint.
  /// @returns the loss of the epoch so far
  /// @collective   @throws DataError or ConfigError, on the first rank, if the checkpoint does not fit this run
  nn::Loss<HostSpace> resume(RunRecord& record);

  /// Prepares the folder before the first step, with a trial write. This detects early that nothing can be saved. It
  /// also refuses checkpoints of another run, whose newest one may be of a later step than this run ever reaches.
  /// @throws DataError, on the first rank, if the folder cannot be created or written to; ConfigError if it has
  /// checkpoints that this run does not resume from, or later ones, or the metadata cannot be saved
  void prepare() const;

  /// Makes the checks of `prepare` that change nothing, for a dry run.   @throws like `prepare`
  void check_folder() const;

  /// Returns whether a checkpoint is due after that step, if the run does not end there.
  [[nodiscard]] bool is_due(Index step) const noexcept { return saves_ && every_ > 0 && step % every_ == 0; }

  /// Saves the run if a checkpoint is due or the run `ends` here. The first rank writes, with the other ranks' parts of
  /// the moments. A last save that fails is made in the folder for temporary files instead.
  /// @collective if the optimizer is sharded
  /// @throws DataError, on the first rank, if the file cannot be written; of the last save it names the second place
  void save_if_due(RunRecord const& record, nn::Loss<HostSpace> const& epoch_loss, bool ends);

  /// Removes older checkpoints after a step with a finite loss: until then the newest may have parameters that are
  /// finite, but too large to compute with.
  void confirm();

  /// Renames the checkpoint of the parameters with which a loss was not finite, if there is an older one, so that the
  /// run resumes from that one. Returns a sentence for the message.
  [[nodiscard]] std::string set_aside(Index steps) const;

  /// Saves the run on the first rank after an error at its last step, without the other ranks. Ignores further errors.
  void save_after_error(RunRecord const& record, nn::Loss<HostSpace> const& epoch_loss) const noexcept;

 private:
  /// Returns whether this is the rank that reads and writes for all.
  [[nodiscard]] bool is_main_rank() const noexcept { return split_.first == 0; }
  [[nodiscard]] parallel::SessionState empty_state() const;
  [[nodiscard]] std::size_t file_bytes() const;
  /// @throws ConfigError if the folder has checkpoints that this run does not continue
  void refuse_other_runs() const;
  void gather_moments() const;
  void save(std::string const& path, RunRecord const& record, nn::Loss<HostSpace> const& epoch_loss) const;
  /// Saves elsewhere, after a save that failed with `error`.   @throws DataError that names both places
  [[noreturn]] void save_elsewhere(RunRecord const& record, nn::Loss<HostSpace> const& epoch_loss,
                                   DataError const& error) const;

  void check(Progress const& progress, RunRecord const& record) const;

  [[nodiscard]] static std::string reproducible_text(int reproducible);

  /// Returns the position in the data after that number of steps.
  [[nodiscard]] data::LoaderState loader_state(Index steps) const;

  Checkpoints options_;
  parallel::AnySession& session_;
  nn::ParameterLayout const& layout_;
  std::uint64_t seed_;
  AnyLoader const& loader_;
  data::Split split_;
  FitPlan& plan_;
  std::string best_by_;
  Index resumed_step_ = 0;  // steps of the checkpoint that the first rank has read
  bool saves_ = false;
  Index every_ = 0;
  Index unconfirmed_step_ = 0;  // of the last checkpoint, until a step after it has a finite loss
};

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/trainer/detail/checkpointing.ipp>
#endif
