// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <lockstep/core/clock.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/data/split.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/parallel/session.hpp>
#include <lockstep/train/checkpoint/checkpoint.hpp>
#include <lockstep/train/logs/run_record.hpp>
#include <lockstep/train/trainer/detail/any_loader.hpp>
#include <lockstep/train/trainer/detail/fit_plan.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Loads and saves the checkpoints of one fit. All arguments of the constructor must outlive it.
class Checkpointing {
 public:
  Checkpointing(Checkpoints const& options, parallel::AnySession& session, nn::ParameterLayout const& layout,
                std::uint64_t seed, AnyLoader const& loader, data::Split const& split, FitPlan& plan);

  /// Resumes from the checkpoint that the first rank names, if any. Call it before `save_if_due`: all ranks learn here
  /// when to save. The plan then has the trainer's work before the fit that saved the checkpoint.
  /// @returns the loss of the epoch so far
  /// @collective   @throws DataError or ConfigError, on the first rank, if the checkpoint does not fit this run
  nn::Loss<HostSpace> resume(RunRecord& record);

  /// Prepares the folder before the first step. This detects early that nothing can be saved. It also refuses
  /// checkpoints of another run, whose newest one may be of a later step than this run ever reaches.
  /// @throws DataError, on the first rank, if the folder cannot be created; ConfigError if it has checkpoints that this
  /// run does not resume from, or later ones
  void prepare() const;

  /// Saves the run if a checkpoint is due or the run `ends` here. The first rank writes, with the other ranks' parts of
  /// the moments.
  /// @collective if the optimizer is sharded
  void save_if_due(RunRecord const& record, nn::Loss<HostSpace> const& epoch_loss, bool ends) const;

 private:
  /// Returns whether this is the rank that reads and writes for all.
  [[nodiscard]] bool is_main_rank() const noexcept { return split_.first == 0; }
  [[nodiscard]] parallel::SessionState empty_state() const;
  void gather_moments() const;

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
  Index resumed_step_ = 0;  // steps of the checkpoint that the first rank has read
  bool saves_ = false;
  Index every_ = 0;
};

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/trainer/detail/checkpointing.ipp>
#endif
