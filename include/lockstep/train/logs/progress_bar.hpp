// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>

#include <lockstep/core/progress.hpp>
#include <lockstep/train/logs/observer.hpp>
#include <lockstep/train/logs/run_record.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Shows the progress of a run. A terminal gets one line that is redrawn. A file gets a line for each tenth of the run,
/// and at least one per minute. For one rank only. Does not own `out`.
class ProgressBar final : public Observer {
 public:
  /// @param out stream, such as stdout, which must outlive it; null shows nothing
  explicit ProgressBar(std::FILE* out);

  /// Says after which step a resumed run continues.
  void start(StartReport const& report) override;

  /// Redraws the line of a terminal at most ten times a second, or writes the next line of a file.
  void step(StepReport const& report) override;

  void evaluating(EvaluationProgress const& report) override;

  /// Prints a line with the epoch and describe(report).
  void evaluation(EvaluationReport const& report) override;

  /// Says if the run ended early, lists training samples that the loaders left out or replaced, and names parameters
  /// that no step used since the start or the last resume.
  void finish(RunRecord const& record) override;

  /// Formats as "evaluation loss 0.2536, accuracy 0.9333 over 195 samples".
  [[nodiscard]] static std::string describe(EvaluationReport const& report);

 private:
  static constexpr int width = 24;
  static constexpr std::size_t max_metrics = 8;  // of an evaluation, shown in its line

  void draw(StepReport const& report, std::string const& line);
  [[nodiscard]] std::string describe(StepReport const& report) const;
  static std::string number(double value, int decimals);

  std::FILE* out_;
  bool terminal_;
  Index epochs_ = 0, steps_ = 0;
  std::optional<lockstep::Progress> evaluation_;  // while one is running
  double drawn_ = 0;                              // seconds since the start of the run
  Index tenths_ = 0;
};

}}}  // namespace lockstep::train

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/logs/progress_bar.ipp>
#endif
