// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>

#include <lockstep/train/logs/unreadable_samples.hpp>
#include <lockstep/train/trainer/detail/loss_parts.hpp>
#include <lockstep/train/trainer/detail/running_fit.hpp>

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
  if (!options.loss_parts.empty() && report.is_logged())
    report.loss_parts = mean_loss_parts(session, options.loss_parts, record.devices, record.loss_parts);
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

LOCKSTEP_INLINE void EvaluationTracker::add(EvaluationReport& report) {
  report.best = best_.add(report);
  bool const improved = improved_.add(report);
  if (improved_.measures(report)) plateau_.record(improved);
  if (report.best) best_step_ = report.step;
}

LOCKSTEP_INLINE bool EvaluationTracker::stops_early() const noexcept {
  return patience_ > 0 && improved_.evaluations_since_best() >= patience_;
}

LOCKSTEP_INLINE void LoadMeter::begin(data::LoaderStats const& loader) {
  passes_.start();
  queued_ = queued_seconds();
  throttled_ = throttled_seconds();
  loader_ = seconds_of(loader);
  looks_ = loader.looks;
  locked_ = loader.locked;
}

LOCKSTEP_INLINE void LoadMeter::end(RankLoad& load, data::LoaderStats const& loader, int threads) const {
  load.compute_seconds = passes_.processor_seconds();
  load.deviation_seconds = passes_.deviation_seconds();
  load.queued_seconds = queued_seconds() - queued_;
  load.throttled_seconds = throttled_seconds() - throttled_;
  load.loader_seconds = std::max(0.0, seconds_of(loader) - loader_);
  load.observed = static_cast<double>(loader.looks - looks_);
  load.locked = static_cast<double>(loader.locked - locked_);
  load.threads = threads;
  load.cores = allowed_processors();
  load.core_set = static_cast<double>(processor_set());
}

LOCKSTEP_INLINE double LoadMeter::seconds_of(data::LoaderStats const& loader) noexcept {
  return loader.workers == 0 ? 0 : (loader.busy_seconds() - loader.queued_seconds) / loader.workers;
}

LOCKSTEP_COLD_INLINE RunningFit::RunningFit(parallel::AnySession& session, nn::ParameterLayout const& layout,
                                            std::uint64_t seed, AnyLoader& loader, FitPlan const& plan, BestValue best,
                                            data::Split const& split, FitOptions const& options, TrainerSteps& done,
                                            RunRecord&& record)
    : session_(session),
      layout_(layout),
      loader_(loader),
      options_(options),
      split_(split),
      rank_(split.first / split.count),
      record_(std::move(record)),
      plan_(plan),
      done_(done),
      checkpoints_(options.checkpoints, session, layout, seed, loader, split, plan_, options.best_by),
      tracker_(best, options) {
  plan_.before = {done.steps - session.loss_scale().skipped, done.epochs};
  epoch_loss_ = checkpoints_.resume(record_);
  session.set_loss_scale(record_.loss_scale);
  done_ = record_.steps > 0 ? plan_.trainer_steps(record_.steps) : plan_.before;
  session.set_gemm_algorithms(record_.gemm_algorithms);
  for (auto& report : record_.evaluations) tracker_.add(report);  // best_by may have changed
}

LOCKSTEP_COLD_INLINE RunningFit::~RunningFit() = default;

LOCKSTEP_INLINE bool RunningFit::lacks_evaluation() const noexcept {
  auto const& all = record_.evaluations;
  return record_.resumed() > 0 && evaluates() && (all.empty() || all.back().step != record_.steps);
}

LOCKSTEP_INLINE void RunningFit::begin(std::vector<std::string> const& metrics) {
  checkpoints_.prepare();
  static_cast<void>(session_.take_phases());  // discards those of earlier steps
  static_cast<void>(session_.take_work());
  plan_.reserve(record_);
  if (measures_load()) loader_.observe();
  auto const loader = loader_.stats();
  if (measures_load()) load_.begin(loader);
  skipped_ = loader.skipped;
  replaced_ = loader.substituted;
  for (auto* observer : options_.observers)
    observer->start({plan_.steps, plan_.epochs, record_.steps, tracker_.best_step(), metrics, options_.best_by,
                     options_.loss_parts});
  tracing_.emplace(options_.trace, record_.devices, session_, loader_, record_.steps, plan_.steps);
  step_ended_ = Clock::seconds();
}

LOCKSTEP_INLINE bool RunningFit::chooses_gemm_algorithms() const noexcept {
  return !session_.kind().on_host && options_.autotune_gemm && record_.gemm_algorithms.empty();
}

LOCKSTEP_INLINE void RunningFit::choose_gemm_algorithms() {
  record_.gemm_algorithms = session_.choose_gemm_algorithms(rank_);
  session_.set_gemm_algorithms(record_.gemm_algorithms);
}

LOCKSTEP_INLINE void RunningFit::add_rehearsal(Index shapes, double began) {
  record_.rehearsed_shapes = shapes;
  record_.rehearsal_seconds = Clock::seconds() - began;
  record_.training_seconds += record_.rehearsal_seconds;
  static_cast<void>(session_.take_phases());  // rehearsals are not steps
  static_cast<void>(session_.take_work());
}

LOCKSTEP_INLINE void RunningFit::before_step() {
  if (epoch_began_ == 0) epoch_began_ = Clock::seconds();
  tracing_->before_step(record_.steps + 1);
  step_began_ = Clock::seconds();
}

LOCKSTEP_INLINE void RunningFit::after_micro_step(double asked, double began, double queued, double sent) {
  tracing_->after_micro_step(asked, began, queued, sent);
}

LOCKSTEP_INLINE double RunningFit::rate_factor() const {
  return options_.schedule.factor(record_.steps + 1, plan_.steps) * tracker_.learning_rate_factor();
}

LOCKSTEP_INLINE bool RunningFit::compares_replicas() const noexcept {
  return options_.check_replicas_every > 0 && (record_.steps + 1) % options_.check_replicas_every == 0;
}

LOCKSTEP_INLINE void RunningFit::after_step(nn::Loss<HostSpace> const& loss, double rate, double updating) {
  auto const began = plan_.begin(record_.steps);
  auto const step = ++record_.steps;
  auto const now = Clock::seconds();
  tracing_->after_step(step, step_began_, updating, now);
  auto const sample_not_finite = [&] {
    return loader_.sample_not_finite(split_, plan_.trainer_epoch(step - 1), began, plan_.end(step - 1));
  };
  try {
    check_finite(session_, loss, step, options_.clip_norm, rank_, record_.world_size, record_.devices,
                 std::ref(sample_not_finite));  // by reference, because a step allocates nothing
  } catch (Error const& error) {
    if (std::isfinite(loss.sum)) throw;
    throw Error(error.what() + checkpoints_.set_aside(step - 1));
  }
  checkpoints_.confirm();
  done_ = plan_.trainer_steps(step);
  if (!has_learned_) has_learned_ = check_learning(session_, layout_, loss, step);
  if (began == 0) epoch_loss_ = {};
  epoch_loss_ += loss;
  record_.train_loss = epoch_loss_.mean();
  record_.add_step(now - step_began_, plan_.samples(step));
  load_.passes().end_step();
  auto const report = reports_.of(session_, plan_, record_, options_, loss.mean(), rate, now);
  if (!report.loss_parts.empty()) add_names(options_.loss_parts, record_.loss_parts);
  // After the collectives of the report: the first rank, which looks when it saves, takes part in them.
  if (ends_here() || (checkpoints_.is_due(step) && rank_ > 0)) check_parameters();
  save_if_throws([&] {
    for (auto* observer : options_.observers) observer->step(report);
  });
  if ((plan_.ends_epoch(step) || is_complete()) && record_.resumed() == 0)
    check_weight(has_learned_, epoch_loss_, step);
  step_ended_ = Clock::seconds();
  if (plan_.ends_epoch(step)) record_.epoch_seconds.push_back(step_ended_ - epoch_began_);
}

LOCKSTEP_INLINE void RunningFit::check_parameters() const {
  if (!session_.kind().on_host && rank_ > 0) return;  // parameters are equal on all ranks, and a copy takes time
  check_finite_parameters(
      layout_, session_.values(), session_.buffers(), "training: after step " + std::to_string(record_.steps) + " ",
      "; it is neither evaluated nor saved, and earlier checkpoints stay. Lower the learning rate, clip the gradient's "
      "norm, look for a division by 0 in layers of your own, or check samples by data::FiniteCheck");
}

LOCKSTEP_INLINE bool RunningFit::evaluates() const noexcept {
  return plan_.evaluates_after(record_.steps, is_complete(), options_);
}

LOCKSTEP_INLINE ProgressCallback RunningFit::evaluating() const {
  if (options_.observers.empty()) return {};
  return [this](Index done, Index steps) {
    for (auto* observer : options_.observers) observer->evaluating({done, steps});
  };
}

LOCKSTEP_INLINE void RunningFit::add_evaluation(EvaluationReport report) {
  report.step = record_.steps;
  report.epoch = plan_.epoch(record_.steps - 1);
  auto const now = Clock::seconds();
  report.seconds = now - record_.run_began;
  tracing_->add("evaluation", step_ended_, now);
  tracker_.add(report);
  for (auto* observer : options_.observers) observer->evaluation(report);
  record_.evaluations.push_back(std::move(report));
}

LOCKSTEP_INLINE void RunningFit::end_step() {
  auto const now = Clock::seconds();
  epoch_began_ = plan_.ends_epoch(record_.steps) ? now : epoch_began_ + (now - step_ended_);
  record_.stopped = record_.stopped || (session_.stop_requested() && !is_complete());
  if (std::exchange(is_first_step_, false) && chooses_gemm_algorithms()) choose_gemm_algorithms();
  try {
    checkpoints_.save_if_due(record_, epoch_loss_, record_.stopped || is_complete());
  } catch (NotFinite const&) {
    check_parameters();
    throw;
  }
}

LOCKSTEP_COLD_INLINE void RunningFit::record_unreadable(data::LoaderStats const& loader) {
  auto const skipped = loader.skipped - skipped_, replaced = loader.substituted - replaced_;
  std::array counts{static_cast<double>(skipped), static_cast<double>(replaced)};
  session_.all_reduce(counts);
  record_.skipped_samples = static_cast<Index>(counts[0]);
  record_.replaced_samples = static_cast<Index>(counts[1]);
  if (counts[0] + counts[1] == 0) return;
  UnreadableSamples unreadable;
  for (int rank = 0; rank < record_.world_size; ++rank) {
    auto samples = unreadable.packed(skipped, replaced, loader.failures);
    session_.broadcast(samples, rank);
    unreadable.add(samples);
  }
  record_.unreadable_samples = unreadable.note();
}

LOCKSTEP_COLD_INLINE RunRecord RunningFit::finish() {
  record_.phases = session_.take_phases();
  record_.work = session_.take_work();
  record_.gpu = session_.device_facts();
  auto const loader = loader_.stats();
  if (measures_load()) load_.end(record_.load, loader, record_.threads);
  record_unreadable(loader);
  record_.loads = loads_of_ranks(session_, record_, rank_);
  // Last collective: after it a rank may exit, as the run is saved.
  record_.ranks = seconds_of_ranks(session_, record_, rank_);
  record_.session = session_.report();
  record_.loss_scale = session_.loss_scale();
  if (record_.steps == record_.resumed()) record_.session.unused_parameters.clear();
  for (auto* observer : options_.observers) observer->finish(record_);
  return std::move(record_);
}

}}}  // namespace lockstep::train::detail
