// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <lockstep/app/detail/run_output.hpp>
#include <lockstep/train/logs/csv_log.hpp>
#include <lockstep/train/logs/metrics_log.hpp>
#include <lockstep/train/logs/observer.hpp>
#include <lockstep/train/logs/progress_bar.hpp>
#include <lockstep/train/logs/tensorboard.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

/// Removes run.json at the start of a resumed run, which is incomplete until it writes the file again.
struct RemoveRunJson final : train::Observer {
  explicit RemoveRunJson(std::string path) : run_json(std::move(path)) {}
  void start(train::StartReport const&) override {
    std::error_code error;
    std::filesystem::remove(run_json, error);
  }
  std::string run_json;
};

/// Observers of a fit that print progress and write the files of --save-dir.
class RunLogs {
 public:
  /// Creates the observers that the options need. `output` must outlive this object and belong to rank 0.
  explicit RunLogs(RunOutput const& output) : output_(output) {
    if (!output.saves()) return;
    remove_run_json_.emplace(output.file("run.json"));
    metrics_.emplace(output.file(names[0]));
    table_.emplace(output.file(names[1]));
#if defined(LOCKSTEP_TENSORBOARD)
    events_ = std::make_unique<train::TensorBoard>(output.folder());
#endif
  }
  RunLogs(RunLogs const&) = delete;
  RunLogs& operator=(RunLogs const&) = delete;

  /// Adds the observers in order, the progress bar first, so that output of others appears below its line.
  void join(std::vector<train::Observer*>& observers) {
    observers.insert(observers.begin(), &progress_);
    if (remove_run_json_) observers.insert(observers.end(), {&*remove_run_json_, &*metrics_, &*table_});
    if (events_) observers.push_back(events_.get());
  }

  /// Notes removed logs after a fit, as their removal does not stop training.
  void note_removed() const {
    for (auto const* name : names)
      if (output_.saves() && !std::filesystem::exists(output_.file(name)))
        output_.note(output_.file(name) + " was removed while the run wrote it, and what it held is lost");
  }

 private:
  static constexpr char const* names[]{"metrics.jsonl", "metrics.csv"};

  RunOutput const& output_;
  train::ProgressBar progress_{stdout};
  std::optional<RemoveRunJson> remove_run_json_;
  std::optional<train::MetricsLog> metrics_;
  std::optional<train::CsvLog> table_;
  std::unique_ptr<train::Observer> events_;  // of equal size in files with and without TensorBoard
};

}}}  // namespace lockstep::app::detail
