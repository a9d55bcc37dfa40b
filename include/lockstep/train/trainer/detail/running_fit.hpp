// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/clock.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/data/split.hpp>
#include <lockstep/memory/space.hpp>
#include <lockstep/nn/autograd/loss.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/optim/plateau.hpp>
#include <lockstep/train/checkpoint/checkpoint.hpp>
#include <lockstep/train/logs/observer.hpp>
#include <lockstep/train/logs/run_record.hpp>
#include <lockstep/train/metrics/best_evaluation.hpp>
#include <lockstep/train/trainer/detail/any_loader.hpp>
#include <lockstep/train/trainer/detail/any_session.hpp>
#include <lockstep/train/trainer/detail/check_learning.hpp>
#include <lockstep/train/trainer/detail/checkpointing.hpp>
#include <lockstep/train/trainer/detail/fit_plan.hpp>
#include <lockstep/train/trainer/detail/seconds_of_ranks.hpp>
#include <lockstep/train/trainer/detail/step_reports.hpp>
#include <lockstep/train/trainer/detail/tracing.hpp>
#include <lockstep/train/trainer/detail/where_not_finite.hpp>
#include <lockstep/train/trainer/fit_options.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Decisions that follow from a fit's evaluations. Evaluations are equal on all ranks, and so are the decisions.
class EvaluationTracker {
 public:
  /// @param best the best value of `options.best_by`
  EvaluationTracker(BestValue best, FitOptions const& options)
      : best_(options.best_by, best), plateau_(options.plateau), patience_(options.patience) {}

  /// Records an evaluation and sets its `best`.
  void add(EvaluationReport& report) {
    report.best = best_.add(report);
    plateau_.record(report.best);
    if (report.best) best_step_ = report.step;
  }
  /// Returns the step of the best evaluation, or 0 without any.
  [[nodiscard]] Index best_step() const noexcept { return best_step_; }
  /// Returns whether the run ends early, because the last evaluations did not improve.
  [[nodiscard]] bool stops_early() const noexcept {
    return patience_ > 0 && best_.evaluations_since_best() >= patience_;
  }
  /// Returns the plateau's learning-rate multiplier.
  [[nodiscard]] double learning_rate_factor() const noexcept { return plateau_.value(); }

 private:
  BestEvaluation best_;
  optim::PlateauFactor plateau_;
  Index patience_, best_step_ = 0;
};

/// State of a running fit: its plan, record, decisions, observers and checkpoints. The trainer makes the steps and
/// evaluations in between. All arguments of the constructor must outlive it.
class RunningFit {
 public:
  /// Resumes from a checkpoint, if the options name one. `best` is the best value of `options.best_by`. `done` is the
  /// trainer's work so far, and is updated.
  /// @collective   @throws all that Checkpointing::resume throws
  RunningFit(AnySession& session, nn::ParameterLayout const& layout, std::uint64_t seed, AnyLoader& loader,
             FitPlan const& plan, BestValue best, data::Split const& split, FitOptions const& options,
             TrainerSteps& done, RunRecord&& record)
      : session_(session),
        layout_(layout),
        loader_(loader),
        options_(options),
        rank_(split.first / split.count),
        record_(std::move(record)),
        plan_(plan),
        done_(done),
        checkpoints_(options.checkpoints, session, layout, seed, loader, split, plan_),
        tracker_(best, options) {
    plan_.before = {done.steps - session.loss_scale().skipped, done.epochs};
    epoch_loss_ = checkpoints_.resume(record_);
    session.set_loss_scale(record_.loss_scale);
    done_ = record_.steps > 0 ? plan_.trainer_steps(record_.steps) : plan_.before;
    session.set_gemm_algorithms(record_.timed_products);
    for (auto& report : record_.evaluations) tracker_.add(report);  // best_by may have changed
  }
  RunningFit(RunningFit const&) = delete;
  RunningFit& operator=(RunningFit const&) = delete;

  [[nodiscard]] FitPlan const& plan() const noexcept { return plan_; }
  [[nodiscard]] RunRecord& record() noexcept { return record_; }
  [[nodiscard]] bool is_complete() const noexcept { return record_.steps >= plan_.steps || tracker_.stops_early(); }
  /// Returns whether the resumed run is already complete.
  [[nodiscard]] bool was_complete() const noexcept { return record_.resumed() > 0 && is_complete(); }

  /// Starts the fit before its first step.   @throws all that Checkpointing::prepare and observers throw
  void begin(std::vector<std::string> const& metrics) {
    checkpoints_.prepare();
    static_cast<void>(session_.take_phases());  // discards those of earlier steps
    static_cast<void>(session_.take_work());
    plan_.reserve(record_);
    for (auto* observer : options_.observers)
      observer->start({plan_.steps, plan_.epochs, record_.steps, tracker_.best_step(), metrics, options_.best_by});
    tracing_.emplace(options_.trace, record_.devices, session_, loader_, record_.steps, plan_.steps);
  }

  void before_step() {
    if (epoch_began_ == 0) epoch_began_ = Clock::seconds();
    tracing_->before_step(record_.steps + 1);
    step_began_ = Clock::seconds();
  }
  /// Records the times when a batch was requested, when it arrived, when its pass was queued, and when the next batch
  /// was sent.
  void after_micro_step(double asked, double began, double queued, double sent) {
    tracing_->after_micro_step(asked, began, queued, sent);
  }
  /// Returns the learning-rate multiplier of the next update.
  [[nodiscard]] double rate_factor() const {
    return options_.schedule.factor(record_.steps + 1, plan_.steps) * tracker_.learning_rate_factor();
  }
  /// Returns whether replicas are compared before and after the next update.
  [[nodiscard]] bool compares_replicas() const noexcept {
    return options_.check_replicas_every > 0 && (record_.steps + 1) % options_.check_replicas_every == 0;
  }
  /// Records a step whose update began at time `updating`.
  /// @throws Error if the loss is not finite or nothing can be learned
  void after_step(nn::Loss<HostSpace> const& loss, double rate, double updating) {
    auto const began = plan_.begin(record_.steps);
    auto const step = ++record_.steps;
    auto const now = Clock::seconds();
    tracing_->after_step(step, step_began_, updating, now);
    check_finite(session_, loss, step, options_.clip_norm, rank_, record_.world_size, record_.devices);
    done_ = plan_.trainer_steps(step);
    if (!has_learned_) has_learned_ = check_learning(session_, layout_, loss, step);
    if (began == 0) epoch_loss_ = {};
    epoch_loss_ += loss;
    record_.train_loss = epoch_loss_.mean();
    record_.add_step(now - step_began_, plan_.samples(step));
    auto const report = reports_.of(session_, plan_, record_, options_, loss.mean(), rate, now);
    for (auto* observer : options_.observers) observer->step(report);
    if ((plan_.ends_epoch(step) || is_complete()) && record_.resumed() == 0)
      check_weight(has_learned_, epoch_loss_, step);
    step_ended_ = Clock::seconds();
    if (plan_.ends_epoch(step)) record_.epoch_seconds.push_back(step_ended_ - epoch_began_);
  }

  [[nodiscard]] bool evaluates() const noexcept {
    return plan_.evaluates_after(record_.steps, is_complete(), options_);
  }
  /// Returns a callback that reports an evaluation's progress to the observers.
  [[nodiscard]] ProgressCallback evaluating() const {
    if (options_.observers.empty()) return {};
    return [this](Index done, Index steps) {
      for (auto* observer : options_.observers) observer->evaluating({done, steps});
    };
  }
  void add_evaluation(EvaluationReport report) {
    report.step = record_.steps, report.epoch = plan_.epoch(record_.steps - 1);
    auto const now = Clock::seconds();
    report.seconds = now - record_.run_began;
    tracing_->add("evaluation", step_ended_, now);
    tracker_.add(report);
    for (auto* observer : options_.observers) observer->evaluation(report);
    record_.evaluations.push_back(std::move(report));
  }

  /// Completes a step, after an evaluation that was due.   @collective
  void end_step() {
    auto const now = Clock::seconds();
    epoch_began_ = plan_.ends_epoch(record_.steps) ? now : epoch_began_ + (now - step_ended_);
    record_.stopped = session_.stop_requested() && !is_complete();
    if (!session_.kind().on_host && options_.timed_products && record_.timed_products.empty()) {
      record_.timed_products = session_.choose_gemm_algorithms(rank_);
      session_.set_gemm_algorithms(record_.timed_products);
    }
    checkpoints_.save_if_due(record_, epoch_loss_, record_.stopped || is_complete());
  }

  /// @collective
  RunRecord finish() {
    record_.phases = session_.take_phases();
    record_.work = session_.take_work();
    // Last collective: after it a rank may exit, as the run is saved.
    record_.ranks = seconds_of_ranks(session_, record_, rank_);
    record_.session = session_.report();
    record_.loss_scale = session_.loss_scale();
    if (record_.steps == 0) record_.session.unused_parameters.clear();
    for (auto* observer : options_.observers) observer->finish(record_);
    return std::move(record_);
  }

 private:
  AnySession& session_;
  nn::ParameterLayout const& layout_;
  AnyLoader& loader_;
  FitOptions const& options_;
  int rank_;
  RunRecord record_;
  FitPlan plan_;
  TrainerSteps& done_;
  Checkpointing checkpoints_;
  EvaluationTracker tracker_;
  std::optional<Tracing> tracing_;  // constructed in begin
  StepReports reports_;
  nn::Loss<HostSpace> epoch_loss_;
  bool has_learned_ = false;
  double epoch_began_ = 0, step_began_ = 0, step_ended_ = 0;  // an epoch's seconds exclude evaluations
};

}}}  // namespace lockstep::train::detail
