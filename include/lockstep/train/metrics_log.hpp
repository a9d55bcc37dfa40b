// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include <lockstep/core/error.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/core/json_writer.hpp>
#include <lockstep/train/detail/close_file.hpp>
#include <lockstep/train/observer.hpp>

namespace lockstep::inline LOCKSTEP_ABI::train {

/// Writes metrics.jsonl: one JSON object per line, about a hundred logged steps a run (every step of a short one, the
/// last always) and every evaluation, with null for what is no number in it. A line is complete in the file as soon as
/// it is logged. A run that goes on from a checkpoint goes on in its file. For one rank only.
class MetricsLog final : public Observer {
 public:
  /// @throws DataError when the file cannot be created
  explicit MetricsLog(std::string path) : path_(std::move(path)), file_(std::fopen(path_.c_str(), "ae")) {
    if (!file_) fail("create");
  }

  /// What the file says of steps that are yet to come is dropped: it was logged after the checkpoint.
  void start(StartReport const& report) override {
    if (::truncate(path_.c_str(), report.resumed == 0 ? 0 : end_of(report.resumed)) != 0) fail("shorten");
  }

  void step(StepReport const& report) override {
    if (!report.is_logged()) return;
    line_.clear();
    line_.begin_object().member("kind", "step").member("step", report.step).member("epoch", report.epoch);
    line_.member("loss", report.loss).member("learning_rate", report.learning_rate).member("samples", report.samples);
    line_.member("samples_per_second", report.samples_per_second).member("seconds", report.seconds);
    if (report.loss_scale > 0)
      line_.member("loss_scale", report.loss_scale).member("skipped_steps", report.skipped_steps);
    line_.end_object();
    write();
  }

  void evaluation(EvaluationReport const& report) override {
    line_.clear();
    line_.begin_object().member("kind", "evaluation").member("step", report.step).member("epoch", report.epoch);
    line_.key("loss").value_or_null(report.loss).member("samples", report.samples);
    for (auto const& [name, value] : report.metrics) line_.key(name).value_or_null(value);
    line_.member("seconds", report.seconds).end_object();
    write();
  }

 private:
  /// The bytes of the lines up to a step; one that was not written to its end is none.
  [[nodiscard]] ::off_t end_of(Index step) const {
    std::unique_ptr<std::FILE, detail::CloseFile> const file(std::fopen(path_.c_str(), "re"));
    ::off_t end = 0;
    std::string line;
    for (int c; file && (c = std::getc(file.get())) != EOF;) {
      line += static_cast<char>(c);
      if (c != '\n') continue;
      if (json::parse(line, path_).at("step").integer() > step) break;
      end += static_cast<::off_t>(line.size());
      line.clear();
    }
    return end;
  }
  void write() {
    if (std::fprintf(file_.get(), "%s\n", line_.text().c_str()) < 0 || std::fflush(file_.get()) != 0) fail("write");
  }
  [[noreturn]] void fail(char const* what) const {
    throw DataError(path_ + ": cannot " + what + " the file: " + std::strerror(errno));
  }

  std::string path_;
  std::unique_ptr<std::FILE, detail::CloseFile> file_;
  json::Writer line_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::train
