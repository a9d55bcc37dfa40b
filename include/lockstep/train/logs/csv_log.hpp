// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/train/detail/csv_quoted.hpp>
#include <lockstep/train/detail/log_columns.hpp>
#include <lockstep/train/detail/single_fit_guard.hpp>
#include <lockstep/train/logs/detail/line_file.hpp>
#include <lockstep/train/logs/observer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Writes metrics.csv: the records of MetricsLog as a table. The first row has the names of the columns, which a run
/// fixes at its start: the columns of MetricsLog and the evaluation's metrics. One row follows for each logged step and
/// each evaluation. Columns that do not apply to a row's kind are empty.
/// Floating-point numbers have the fewest digits that read back as equal bits. A row is complete in the file when it is
/// logged. A resumed run continues its file. For one rank only.
/// @throws DataError if the file cannot be written, or its columns differ from those of the resumed run; ConfigError at
/// the start of a second fit
class CsvLog final : public Observer {
 public:
  /// Stores the path. The file is created when a run starts.
  explicit CsvLog(std::string path) : file_(std::move(path)) {}

  /// Removes rows of steps after the checkpoint that the run resumes from.
  void start(StartReport const& report) override {
    fit_guard_.start("CsvLog", file_.path(), report.resumed);
    metrics_ = report.metrics;
    std::string header;
    for (auto const* name : detail::log_columns) header += (header.empty() ? "" : ",") + std::string(name);
    for (auto const& name : metrics_) header += "," + detail::csv_cell(name);
    auto const kept = file_.truncate_after(report.resumed, [&](std::string const& line, Index row) {
      if (row > 1) return step_of(line, row);
      if (line == header) return Index{0};
      throw DataError(file_.path() + ": its columns are \"" + line + "\", but the resumed run has \"" + header +
                      "\"; move the file away, and the run starts a new one");
    });
    if (kept == 0) file_.write(header);
  }

  void step(StepReport const& report) override {
    if (!report.is_logged()) return;
    line_ = "step";
    add(report.step), add(report.epoch), add(report.loss), add(report.learning_rate);
    add(report.samples), add(report.samples_per_second), add(report.seconds);
    if (report.loss_scale > 0)
      add(report.loss_scale), add(report.skipped_steps);
    else
      add_empty(2);
    report.gradient_norm > 0 ? add(report.gradient_norm) : add_empty(1);
    add_empty(metrics_.size());
    file_.write(line_);
  }

  void evaluation(EvaluationReport const& report) override {
    line_ = "evaluation";
    add(report.step), add(report.epoch), add(report.loss), add_empty(1);
    add(report.samples), add_empty(1), add(report.seconds), add_empty(3);
    for (auto const& name : metrics_) {
      auto const found = std::find_if(report.metrics.begin(), report.metrics.end(),
                                      [&](auto const& metric) { return metric.first == name; });
      found == report.metrics.end() ? add_empty(1) : add(found->second);
    }
    file_.write(line_);
  }

 private:
  template <class T>
  void add(T value) {
    char text[64];
    line_ += ',';
    line_.append(text, std::to_chars(text, text + sizeof text, value).ptr);
  }
  /// Adds empty cells.
  void add_empty(std::size_t cells) { line_.append(cells, ','); }

  [[nodiscard]] Index step_of(std::string const& line, Index row) const {
    Index step = 0;
    auto const comma = line.find(',');
    auto const* const begin = line.data() + (comma == std::string::npos ? line.size() : comma + 1);
    if (std::from_chars(begin, line.data() + line.size(), step).ec == std::errc()) return step;
    throw DataError(file_.path() + ": row " + std::to_string(row) +
                    " does not begin with a kind and a step; move the file away, and the run starts a new one");
  }

  detail::LineFile file_;
  detail::SingleFitGuard fit_guard_;
  std::vector<std::string> metrics_;
  std::string line_;
};

}}}  // namespace lockstep::train
