// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/core/json_writer.hpp>
#include <lockstep/train/detail/single_fit_guard.hpp>
#include <lockstep/train/logs/detail/line_file.hpp>
#include <lockstep/train/logs/observer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Writes metrics.jsonl: one JSON object per line for each step with StepReport::is_logged() and each evaluation.
/// Values that are not numbers are null. A line is complete in the file when it is logged. A resumed run continues its
/// file. For one rank only.
/// @throws DataError if the file cannot be written, ConfigError at the start of a second fit
class MetricsLog final : public Observer {
 public:
  /// Stores the path. The file is created when a run starts.
  explicit MetricsLog(std::string path) : file_(std::move(path)) {}

  /// Removes lines of steps after the checkpoint that the run resumes from.
  void start(StartReport const& report) override {
    fit_guard_.start("MetricsLog", file_.path(), report.resumed);
    file_.truncate_after(report.resumed, [this](std::string const& line, Index number) {
      try {
        return json::parse(line, file_.path()).at("step").integer();
      } catch (DataError const&) {
        throw DataError(file_.path() + ":" + std::to_string(number) +
                        ": the line has no step, so the log cannot be continued; remove the line, or "
                        "move the file away, and the run starts a new one");
      }
    });
  }

  void step(StepReport const& report) override {
    if (!report.is_logged()) return;
    line_.clear();
    line_.begin_object().member("kind", "step").member("step", report.step).member("epoch", report.epoch);
    line_.member("loss", report.loss).member("learning_rate", report.learning_rate).member("samples", report.samples);
    line_.member("samples_per_second", report.samples_per_second).member("seconds", report.seconds);
    if (report.loss_scale > 0)
      line_.member("loss_scale", report.loss_scale).member("skipped_steps", report.skipped_steps);
    if (report.gradient_norm > 0) line_.key("gradient_norm").value_or_null(report.gradient_norm);
    line_.end_object();
    file_.write(line_.text());
  }

  void evaluation(EvaluationReport const& report) override {
    line_.clear();
    line_.begin_object().member("kind", "evaluation").member("step", report.step).member("epoch", report.epoch);
    line_.key("loss").value_or_null(report.loss).member("samples", report.samples);
    for (auto const& [name, value] : report.metrics) line_.key(name).value_or_null(value);
    line_.member("seconds", report.seconds).end_object();
    file_.write(line_.text());
  }

 private:
  detail::LineFile file_;
  detail::SingleFitGuard fit_guard_;
  json::Writer line_;
};

}}}  // namespace lockstep::train
