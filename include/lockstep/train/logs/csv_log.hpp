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
/// fixes at its start: the columns of MetricsLog, the evaluation's metrics and the parts of the loss. One row follows
/// for each logged step and each evaluation. Columns that do not apply to a row's kind are empty. Floating-point
/// numbers have the fewest digits that read back as equal bits. A row is complete in the file when it is logged. A
/// resumed run continues its file. For one rank only.
/// @throws DataError if the file cannot be written, or its columns differ from those of the resumed run; ConfigError at
/// the start of a second fit
class CsvLog final : public Observer {
 public:
  /// Stores the path. The file is created when a run starts.
  explicit CsvLog(std::string path);

  /// Removes rows of steps after the checkpoint that the run resumes from.
  void start(StartReport const& report) override;

  /// Writes a row if the step is logged.
  void step(StepReport const& report) override;

  /// Writes a row.
  void evaluation(EvaluationReport const& report) override;

 private:
  template <class Value>
  void add(Value value) {
    char text[64];
    line_ += ',';
    line_.append(text, std::to_chars(text, text + sizeof text, value).ptr);
  }
  /// Adds empty cells.
  void add_empty(std::size_t cells) { line_.append(cells, ','); }
  /// Adds the cells of all columns of values; those without a value are empty.
  void add_values(std::vector<std::pair<std::string, double>> const& named);

  [[nodiscard]] Index step_of(std::string const& line, Index row) const;

  detail::LineFile file_;
  detail::SingleFitGuard fit_guard_;
  std::vector<std::string> values_;
  std::string line_;
};

}}}  // namespace lockstep::train

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/logs/csv_log.ipp>
#endif
