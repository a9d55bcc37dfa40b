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
  explicit MetricsLog(std::string path);

  /// Removes lines of steps after the checkpoint that the run resumes from.
  void start(StartReport const& report) override;

  /// Writes a line if the step is logged.
  void step(StepReport const& report) override;

  /// Writes a line.
  void evaluation(EvaluationReport const& report) override;

 private:
  detail::LineFile file_;
  detail::SingleFitGuard fit_guard_;
  json::Writer line_;
};

}}}  // namespace lockstep::train

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/logs/metrics_log.ipp>
#endif
