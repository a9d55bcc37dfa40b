// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/logs/metrics_log.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

LOCKSTEP_COLD_INLINE void MetricsLog::start(StartReport const& report) {
  fit_guard_.start("MetricsLog", file_.path(), report.resumed);
  file_.truncate_after(report.resumed, detail::names_of_values(report), [this](std::string const& line, Index number) {
    try {
      return json::parse(line, file_.path()).at("step").integer();
    } catch (DataError const&) {
      throw DataError(file_.path() + ":" + std::to_string(number) +
                      ": the line has no step, so the log cannot be continued; remove the line, or "
                      "move the file away, and the run starts a new one");
    }
  });
}

LOCKSTEP_INLINE void MetricsLog::step(StepReport const& report) {
  if (!report.is_logged()) return;
  line_.clear();
  line_.begin_object().member("kind", "step").member("step", report.step).member("epoch", report.epoch);
  line_.member("loss", report.loss).member("learning_rate", report.learning_rate).member("samples", report.samples);
  line_.member("samples_per_second", report.samples_per_second).member("seconds", report.seconds);
  if (report.loss_scale > 0)
    line_.member("loss_scale", report.loss_scale).member("skipped_steps", report.skipped_steps);
  if (report.gradient_norm > 0) line_.key("gradient_norm").value_or_null(report.gradient_norm);
  for (auto const& [name, value] : report.loss_parts) line_.key(name).value_or_null(value);
  line_.end_object();
  file_.write(line_.text());
}

LOCKSTEP_COLD_INLINE void MetricsLog::evaluation(EvaluationReport const& report) {
  line_.clear();
  line_.begin_object().member("kind", "evaluation").member("step", report.step).member("epoch", report.epoch);
  line_.key("loss").value_or_null(report.loss).member("samples", report.samples);
  for (auto const& [name, value] : report.metrics) line_.key(name).value_or_null(value);
  line_.member("seconds", report.seconds).end_object();
  file_.write(line_.text());
}

LOCKSTEP_COLD_INLINE MetricsLog::MetricsLog(std::string path) : file_(std::move(path)) {}

}}}  // namespace lockstep::train
