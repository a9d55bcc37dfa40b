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
#include <lockstep/nn/loss.hpp>
#include <lockstep/nn/parameter_layout.hpp>
#include <lockstep/train/checkpoint.hpp>
#include <lockstep/train/detail/any_loader.hpp>
#include <lockstep/train/detail/any_session.hpp>
#include <lockstep/train/detail/check_learning.hpp>
#include <lockstep/train/detail/checkpointing.hpp>
#include <lockstep/train/detail/fit_plan.hpp>
#include <lockstep/train/detail/judge.hpp>
#include <lockstep/train/detail/seconds_of_ranks.hpp>
#include <lockstep/train/detail/step_reports.hpp>
#include <lockstep/train/detail/tracing.hpp>
#include <lockstep/train/detail/where_not_finite.hpp>
#include <lockstep/train/fit_options.hpp>
#include <lockstep/train/observer.hpp>
#include <lockstep/train/run_record.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// A fit under way: what is planned and was done, what comes of it, who is told and where it is saved. The trainer
/// makes the steps and evaluations between. All that it is given outlives it.
class RunningFit {
 public:
  /// Goes on from a checkpoint, where the options name one. `best` is the best value of what they judge by, and `done`
  /// what the trainer has done, which stays so.
  /// @collective   @throws what Checkpointing::take_up throws
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
        judge_(best, options) {
    plan_.before = {done.steps - session.loss_scale().skipped, done.epochs};
    epoch_loss_ = checkpoints_.take_up(record_);
    session.set_loss_scale(record_.loss_scale);
    done_ = record_.steps > 0 ? plan_.trainer_steps(record_.steps) : plan_.before;
    session.take_products(record_.timed_products);
    for (auto& report : record_.evaluations) judge_.take(report);  // which may have been judged by something else
  }
  RunningFit(RunningFit const&) = delete;
  RunningFit& operator=(RunningFit const&) = delete;

  [[nodiscard]] FitPlan const& plan() const noexcept { return plan_; }
  [[nodiscard]] RunRecord& record() noexcept { return record_; }
  [[nodiscard]] bool over() const noexcept { return record_.steps >= plan_.steps || judge_.ends_run(); }
  /// The checkpoint that it went on from was the last.
  [[nodiscard]] bool was_over() const noexcept { return record_.resumed() > 0 && over(); }

  /// Before the first step.   @throws what Checkpointing::prepare and observers throw
  void begin(std::vector<std::string> const& metrics) {
    checkpoints_.prepare();
    static_cast<void>(session_.take_phases());  // of steps before
    plan_.make_room(record_);
    for (auto* observer : options_.observers)
      observer->start({plan_.steps, plan_.epochs, record_.steps, judge_.best(), metrics, options_.judge_by});
    tracing_.emplace(options_.trace, record_.devices, session_, loader_, record_.steps, plan_.steps);
  }

  void before_step() {
    if (epoch_began_ == 0) epoch_began_ = Clock::seconds();
    tracing_->before_step(record_.steps + 1);
    step_began_ = Clock::seconds();
  }
  /// When a batch was asked for and was there, its pass was queued, and the next batch sent.
  void after_micro_step(double asked, double began, double queued, double sent) {
    tracing_->after_micro_step(asked, began, queued, sent);
  }
  /// The factor on the optimizer's learning rate in the step that is to be updated.
  [[nodiscard]] double rate_factor() const {
    return options_.schedule.factor(record_.steps + 1, plan_.steps) * judge_.factor();
  }
  /// Whether replicas are compared before and after its update.
  [[nodiscard]] bool compares() const noexcept {
    return options_.check_replicas_every > 0 && (record_.steps + 1) % options_.check_replicas_every == 0;
  }
  /// A step was made, whose update began at a time.
  /// @throws Error when the loss is no finite number or nothing can be learned
  void after_step(nn::Loss<HostSpace> const& loss, double rate, double updating) {
    auto const began = plan_.begin(record_.steps);
    auto const step = ++record_.steps;
    auto const now = Clock::seconds();
    tracing_->after_step(step, step_began_, updating, now);
    check_finite(session_, loss, step, options_.clip_norm, rank_, record_.world_size, record_.devices);
    done_ = plan_.trainer_steps(step);
    if (!learns_) learns_ = check_learning(session_, layout_, loss, step);
    if (began == 0) epoch_loss_ = {};
    epoch_loss_ += loss;
    record_.train_loss = epoch_loss_.mean();
    record_.add_step(now - step_began_, plan_.samples(step));
    auto const told = reports_.of(session_, plan_, record_, options_, loss.mean(), rate, now);
    for (auto* observer : options_.observers) observer->step(told);
    if ((plan_.ends_epoch(step) || over()) && record_.resumed() == 0) check_weight(learns_, epoch_loss_, step);
    step_ended_ = Clock::seconds();
    if (plan_.ends_epoch(step)) record_.epoch_seconds.push_back(step_ended_ - epoch_began_);
  }

  [[nodiscard]] bool evaluates() const noexcept { return plan_.evaluates_after(record_.steps, over(), options_); }
  /// Tells the observers how far an evaluation is.
  [[nodiscard]] StepsMade evaluating() const {
    if (options_.observers.empty()) return {};
    return [this](Index done, Index steps) {
      for (auto* observer : options_.observers) observer->evaluating({done, steps});
    };
  }
  void take(EvaluationReport report) {
    report.step = record_.steps, report.epoch = plan_.epoch(record_.steps - 1);
    auto const now = Clock::seconds();
    report.seconds = now - record_.run_began;
    tracing_->add("evaluation", step_ended_, now);
    judge_.take(report);
    for (auto* observer : options_.observers) observer->evaluation(report);
    record_.evaluations.push_back(std::move(report));
  }

  /// After a step, and the evaluation that was due.   @collective
  void leave_step() {
    auto const now = Clock::seconds();
    epoch_began_ = plan_.ends_epoch(record_.steps) ? now : epoch_began_ + (now - step_ended_);
    record_.stopped = session_.stops() && !over();
    if (!session_.kind().on_host && options_.timed_products && record_.timed_products.empty()) {
      record_.timed_products = session_.choose_products(rank_);
      session_.take_products(record_.timed_products);
    }
    checkpoints_.leave(record_, epoch_loss_, record_.stopped || over());
  }

  /// @collective
  RunRecord finish() {
    record_.phases = session_.take_phases();
    // The last meeting: who has come here may end, for the run is saved.
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
  Judge judge_;
  std::optional<Tracing> tracing_;  // of steps
  StepReports reports_;
  nn::Loss<HostSpace> epoch_loss_;
  bool learns_ = false;
  double epoch_began_ = 0, step_began_ = 0, step_ended_ = 0;  // evaluations are not part of an epoch's seconds
};

}}}  // namespace lockstep::train::detail
