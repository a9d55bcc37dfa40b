// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/clock.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/data/loader/loader_stats.hpp>
#include <lockstep/data/split.hpp>
#include <lockstep/memory/space.hpp>
#include <lockstep/nn/autograd/loss.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/optim/loss_scaler.hpp>
#include <lockstep/optim/plateau.hpp>
#include <lockstep/parallel/session.hpp>
#include <lockstep/train/checkpoint/checkpoint.hpp>
#include <lockstep/train/detail/check_finite_parameters.hpp>
#include <lockstep/train/logs/observer.hpp>
#include <lockstep/train/logs/run_record.hpp>
#include <lockstep/train/metrics/best_evaluation.hpp>
#include <lockstep/train/trainer/detail/any_loader.hpp>
#include <lockstep/train/trainer/detail/check_learning.hpp>
#include <lockstep/train/trainer/detail/checkpointing.hpp>
#include <lockstep/train/trainer/detail/fit_plan.hpp>
#include <lockstep/train/trainer/detail/pass_meter.hpp>
#include <lockstep/train/trainer/detail/recent_rate.hpp>
#include <lockstep/train/trainer/detail/seconds_of_ranks.hpp>
#include <lockstep/train/trainer/detail/tracing.hpp>
#include <lockstep/train/trainer/detail/where_not_finite.hpp>
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

/// Decisions that follow from a fit's evaluations. Evaluations are equal on all ranks, and so are the decisions.
class EvaluationTracker {
 public:
  /// @param best the best value of `options.best_by`
  EvaluationTracker(BestValue best, FitOptions const& options)
      : best_(options.best_by, best),
        improved_(options.best_by, best, options.min_delta),
        plateau_(options.plateau),
        patience_(options.patience) {}

  /// Records an evaluation and sets its `best`.
  void add(EvaluationReport& report);
  /// Returns the step of the best evaluation, or 0 without any.
  [[nodiscard]] Index best_step() const noexcept { return best_step_; }
  /// Returns whether the run ends early, because the last evaluations did not improve.
  [[nodiscard]] bool stops_early() const noexcept;
  /// Returns the plateau's learning-rate multiplier.
  [[nodiscard]] double learning_rate_factor() const noexcept { return plateau_.value(); }

 private:
  BestEvaluation best_;
  BestEvaluation improved_;  // by at least min_delta
  optim::PlateauFactor plateau_;
  Index patience_, best_step_ = 0;
};

/// Measures how its host's processors serve this rank, from `begin` to `end`, for a model on the host.
class LoadMeter {
 public:
  void begin(data::LoaderStats const& loader);
  [[nodiscard]] PassMeter& passes() noexcept { return passes_; }
  /// Sets `load`.
  void end(RankLoad& load, data::LoaderStats const& loader, int threads) const;

 private:
  /// Returns the time of a loader's threads without waits for a processor, on average.
  [[nodiscard]] static double seconds_of(data::LoaderStats const& loader) noexcept;

  double queued_ = 0, loader_ = 0, throttled_ = 0;
  Index looks_ = 0, locked_ = 0;
  PassMeter passes_;
};

/// State of a running fit: its plan, record, decisions, observers and checkpoints. The trainer makes the steps and
/// evaluations in between. All arguments of the constructor must outlive it.
class RunningFit {
 public:
  /// Resumes from a checkpoint, if the options name one. `best` is the best value of `options.best_by`. `done` is the
  /// trainer's work so far, and is updated.
  /// @collective   @throws all that Checkpointing::resume throws
  RunningFit(parallel::AnySession& session, nn::ParameterLayout const& layout, std::uint64_t seed, AnyLoader& loader,
             FitPlan const& plan, BestValue best, data::Split const& split, FitOptions const& options,
             TrainerSteps& done, RunRecord&& record);
  ~RunningFit();
  RunningFit(RunningFit const&) = delete;
  RunningFit& operator=(RunningFit const&) = delete;

  [[nodiscard]] FitPlan const& plan() const noexcept { return plan_; }
  [[nodiscard]] RunRecord& record() noexcept { return record_; }
  [[nodiscard]] PassMeter& pass_meter() noexcept { return load_.passes(); }
  [[nodiscard]] bool is_complete() const noexcept { return record_.steps >= plan_.steps || tracker_.stops_early(); }
  /// Returns whether the resumed run is already complete.
  [[nodiscard]] bool was_complete() const noexcept { return record_.resumed() > 0 && is_complete(); }

  /// Returns whether a resumed run lacks the evaluation that is due after its last step, because it failed. Equal on
  /// all ranks.
  [[nodiscard]] bool lacks_evaluation() const noexcept;

  /// Checks the folder for checkpoints without changes.   @throws all that Checkpointing::check_folder throws
  void check_folder() const { checkpoints_.check_folder(); }
  /// Starts the fit before its first step.   @throws all that Checkpointing::prepare and observers throw
  void begin(std::vector<std::string> const& metrics);

  /// Returns whether GEMM algorithms are to be chosen by timing. Equal on all ranks.
  [[nodiscard]] bool chooses_gemm_algorithms() const noexcept;
  /// Chooses them for the products so far, if there are any.   @collective
  void choose_gemm_algorithms();
  /// Records that passes of so many shapes of batches were recorded since the time `began`.
  void add_rehearsal(Index shapes, double began);
  void before_step();
  /// Records the times when a batch was requested, when it arrived, when its pass was queued, and when the next batch
  /// was sent.
  void after_micro_step(double asked, double began, double queued, double sent);
  /// Returns the learning-rate multiplier of the next update.
  [[nodiscard]] double rate_factor() const;
  /// Returns whether replicas are compared before and after the next update.
  [[nodiscard]] bool compares_replicas() const noexcept;
  /// Records a step whose update began at time `updating`.
  /// @throws Error if the loss is not finite or nothing can be learned, or a parameter is not finite before it is
  /// evaluated or saved
  void after_step(nn::Loss<HostSpace> const& loss, double rate, double updating);

  [[nodiscard]] bool evaluates() const noexcept;
  /// Checks what is to be evaluated or saved.   @throws Error if a parameter is not finite, or a buffer is NaN
  void check_parameters() const;
  /// Returns a callback that reports an evaluation's progress to the observers.
  [[nodiscard]] ProgressCallback evaluating() const;
  void add_evaluation(EvaluationReport report);
  /// Returns the token that ends an evaluation.
  [[nodiscard]] std::stop_token const& stop() const noexcept { return options_.stop; }
  /// Records that an evaluation was ended by a stop. The run stops, so that a resumed one makes it.
  void interrupt() noexcept { record_.stopped = true; }
  /// Saves a resumed run after the evaluation that it lacked.   @collective
  void save_evaluation() { checkpoints_.save_if_due(record_, epoch_loss_, is_complete()); }
  /// Calls f(). If it throws after the last step or a stop request, saves the run before the exception passes on: an
  /// evaluation on a damaged sample, or a wait for ranks that still evaluate, does not lose what was learned.
  template <class Function>
  void save_if_throws(Function const& f) {
    try {
      f();
    } catch (...) {
      if (ends_here() || options_.stop.stop_requested()) checkpoints_.save_after_error(record_, epoch_loss_);
      throw;
    }
  }

  /// Completes a step, after an evaluation that was due.   @collective
  void end_step();

  /// @collective
  RunRecord finish();

 private:
  /// Records the samples that the loaders of all ranks skipped or replaced in this fit.   @collective
  void record_unreadable(data::LoaderStats const& loader);
  /// Returns whether this thread computes on the host. Several devices have threads of their own.
  [[nodiscard]] bool measures_load() const noexcept { return session_.kind().on_host && record_.devices == 1; }

  /// Returns whether the last step was the run's last one, as far as is known before its evaluation.
  [[nodiscard]] bool ends_here() const { return is_complete() || session_.stop_requested(); }

  parallel::AnySession& session_;
  nn::ParameterLayout const& layout_;
  AnyLoader& loader_;
  FitOptions const& options_;
  data::Split split_;
  int rank_;
  RunRecord record_;
  FitPlan plan_;
  TrainerSteps& done_;
  Checkpointing checkpoints_;
  EvaluationTracker tracker_;
  std::optional<Tracing> tracing_;  // constructed in begin
  StepReports reports_;
  LoadMeter load_;
  Index skipped_ = 0, replaced_ = 0;  // by the loader, before the fit
  nn::Loss<HostSpace> epoch_loss_;
  bool is_first_step_ = true, has_learned_ = false;           // the first since the last resume
  double epoch_began_ = 0, step_began_ = 0, step_ended_ = 0;  // an epoch's seconds exclude evaluations
};

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/trainer/detail/running_fit.ipp>
#endif
