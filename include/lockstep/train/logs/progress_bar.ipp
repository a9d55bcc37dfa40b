// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/logs/progress_bar.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

LOCKSTEP_COLD_INLINE void ProgressBar::start(StartReport const& report) {
  if (!out_) return;
  epochs_ = report.epochs;
  steps_ = report.steps;
  drawn_ = 0;
  tenths_ = 0;
  if (report.resumed == 0) return;
  std::fprintf(out_, "resuming after step %lld of %lld\n", static_cast<long long>(report.resumed),
               static_cast<long long>(report.steps));
  std::fflush(out_);
}

LOCKSTEP_INLINE void ProgressBar::step(StepReport const& report) {
  if (!out_) return;
  auto const tenth = report.step * 10 / std::max<Index>(1, report.steps);
  auto const passed = report.seconds - drawn_;
  bool const due = terminal_ ? passed >= 0.1 || report.step == report.steps : passed >= 60 || tenth > tenths_;
  if (!due) return;
  drawn_ = report.seconds;
  tenths_ = tenth;
  auto const left = report.seconds / static_cast<double>(report.step) * static_cast<double>(report.steps - report.step);
  auto const line = describe(report) + (terminal_ || left >= 60 ? ", " + minutes_and_seconds(left) + " left" : "");
  terminal_ ? draw(report, line) : static_cast<void>(std::fprintf(out_, "%s\n", line.c_str()));
  std::fflush(out_);
}

LOCKSTEP_INLINE void ProgressBar::evaluating(EvaluationProgress const& report) {
  if (!out_) return;
  if (!evaluation_) evaluation_.emplace(out_);
  if (report.done == 1) evaluation_->begin("evaluating", report.steps);
  evaluation_->add(1);
}

LOCKSTEP_COLD_INLINE void ProgressBar::evaluation(EvaluationReport const& report) {
  if (!out_) return;
  evaluation_.reset();
  std::fprintf(out_, "%sepoch %td/%td: %s\n", terminal_ ? "\r\x1b[K" : "", report.epoch + 1, epochs_,
               describe(report).c_str());
  std::fflush(out_);
}

LOCKSTEP_COLD_INLINE void ProgressBar::finish(RunRecord const& record) {
  if (!out_) return;
  Index best_epoch = 0;  // counted from 1; includes epochs before a resume
  for (auto const& each : record.evaluations)
    if (each.best) best_epoch = each.epoch + 1;
  if (record.stopped) {
    std::fprintf(out_, "%sstopped after step %lld of %lld on request\n", terminal_ ? "\r\x1b[K" : "",
                 static_cast<long long>(record.steps), static_cast<long long>(steps_));
    std::fflush(out_);
  } else if (record.steps < steps_ && best_epoch > 0) {
    std::fprintf(out_, "ends here: no evaluation was better than the one after epoch %lld\n",
                 static_cast<long long>(best_epoch));
    std::fflush(out_);
  }
  if (!record.unreadable_samples.empty()) {
    std::fprintf(out_, "%snote: %s\n", terminal_ ? "\r\x1b[K" : "", record.unreadable_samples.c_str());
    std::fflush(out_);
  }
  std::string names;
  for (auto const& name : record.session.unused_parameters) names += (names.empty() ? "" : ", ") + name;
  if (names.empty()) return;
  char const* const clear = terminal_ ? "\r\x1b[K" : "";
  if (auto const resumed = static_cast<long long>(record.resumed()); resumed > 0)
    std::fprintf(out_, "%snote: no step since the resume at step %lld used these parameters: %s\n", clear, resumed,
                 names.c_str());
  else
    std::fprintf(out_, "%snote: no step used these parameters, which have not learned: %s\n", clear, names.c_str());
  std::fflush(out_);
}

LOCKSTEP_COLD_INLINE std::string ProgressBar::describe(EvaluationReport const& report) {
  auto line = "evaluation loss " + number(report.loss, 4);
  auto const shown = std::min(report.metrics.size(), max_metrics);
  for (std::size_t i = 0; i < shown; ++i)
    line += ", " + report.metrics[i].first + " " + number(report.metrics[i].second, 4);
  if (shown < report.metrics.size()) line += " and " + std::to_string(report.metrics.size() - shown) + " more metrics";
  return line + " over " + std::to_string(report.samples) + " samples";
}

LOCKSTEP_INLINE void ProgressBar::draw(StepReport const& report, std::string const& line) {
  auto const full = static_cast<std::size_t>(report.step * width / std::max<Index>(1, report.steps));
  std::fprintf(out_, "\r\x1b[K[%s%s] %s", std::string(full, '=').c_str(), std::string(width - full, ' ').c_str(),
               line.c_str());
}

LOCKSTEP_COLD_INLINE std::string ProgressBar::describe(StepReport const& report) const {
  return "epoch " + std::to_string(report.epoch + 1) + "/" + std::to_string(epochs_) + ", step " +
         std::to_string(report.step) + "/" + std::to_string(report.steps) + ", loss " + number(report.loss, 4) + ", " +
         number(report.samples_per_second, 0) + " samples/s";
}

LOCKSTEP_COLD_INLINE std::string ProgressBar::number(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

LOCKSTEP_COLD_INLINE ProgressBar::ProgressBar(std::FILE* out) : out_(out), terminal_(can_redraw(out)) {}

}}}  // namespace lockstep::train
