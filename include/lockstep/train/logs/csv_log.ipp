// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/logs/csv_log.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

LOCKSTEP_INLINE void CsvLog::start(StartReport const& report) {
  fit_guard_.start("CsvLog", file_.path(), report.resumed);
  values_ = detail::names_of_values(report);
  std::string header;
  for (auto const* name : detail::log_columns) header += (header.empty() ? "" : ",") + std::string(name);
  for (auto const& name : values_) header += "," + detail::csv_cell(name);
  auto const kept = file_.truncate_after(report.resumed, values_, [&](std::string const& line, Index row) {
    if (row > 1) return step_of(line, row);
    if (line == header) return Index{0};
    throw DataError(file_.path() + ": its columns are \"" + line + "\", but the resumed run has \"" + header +
                    "\"; move the file away, and the run starts a new one");
  });
  if (kept == 0) file_.write(header);
}

LOCKSTEP_INLINE void CsvLog::step(StepReport const& report) {
  if (!report.is_logged()) return;
  line_ = "step";
  add(report.step);
  add(report.epoch);
  add(report.loss);
  add(report.learning_rate);
  add(report.samples);
  add(report.samples_per_second);
  add(report.seconds);
  if (report.loss_scale > 0) {
    add(report.loss_scale);
    add(report.skipped_steps);
  } else {
    add_empty(2);
  }
  report.gradient_norm > 0 ? add(report.gradient_norm) : add_empty(1);
  add_values(report.loss_parts);
  file_.write(line_);
}

LOCKSTEP_INLINE void CsvLog::evaluation(EvaluationReport const& report) {
  line_ = "evaluation";
  add(report.step);
  add(report.epoch);
  add(report.loss);
  add_empty(1);
  add(report.samples);
  add_empty(1);
  add(report.seconds);
  add_empty(3);
  add_values(report.metrics);
  file_.write(line_);
}

LOCKSTEP_INLINE void CsvLog::add_values(std::vector<std::pair<std::string, double>> const& named) {
  auto next = named.begin();  // they have the order of the columns, unless some are missing
  for (auto const& column : values_) {
    auto const is_named = [&](auto const& value) { return value.first == column; };
    auto const found =
        next != named.end() && is_named(*next) ? next : std::find_if(named.begin(), named.end(), is_named);
    if (found == named.end()) {
      add_empty(1);
    } else {
      add(found->second);
      next = found + 1;
    }
  }
}

LOCKSTEP_INLINE Index CsvLog::step_of(std::string const& line, Index row) const {
  Index step = 0;
  auto const comma = line.find(',');
  auto const* const begin = line.data() + (comma == std::string::npos ? line.size() : comma + 1);
  if (std::from_chars(begin, line.data() + line.size(), step).ec == std::errc()) return step;
  throw DataError(file_.path() + ": row " + std::to_string(row) +
                  " does not begin with a kind and a step; move the file away, and the run starts a new one");
}

LOCKSTEP_COLD_INLINE CsvLog::CsvLog(std::string path) : file_(std::move(path)) {}

}}}  // namespace lockstep::train
