// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string>
#include <utility>

#include <lockstep/core/error.hpp>
#include <lockstep/train/checkpoint/checkpoint.hpp>
#include <lockstep/train/detail/single_fit_guard.hpp>
#include <lockstep/train/files/safetensors.hpp>
#include <lockstep/train/logs/observer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Saves the trainer's parameters, buffers and `metadata` after each evaluation that is the best so far by
/// `FitOptions::best_by`. The file appears complete or not at all. Its folder is created before the first step. A fit
/// without evaluations is rejected.
/// A resumed run may be judged by another metric, by which another evaluation was the best. The existing file is then
/// renamed, see `renamed_file()`.
/// For one rank only. The trainer must outlive it. If `out` is given, it receives a line for each file: "new best f1
/// 0.8123 at step 120, saved to best.safetensors".
/// @throws DataError, which ends the run, if the folder cannot be created or the file cannot be written; ConfigError at
/// the start of a second fit, whose best evaluation may be worse
template <class Trainer>
class KeepBest final : public Observer {
 public:
  KeepBest(Trainer const& trainer, std::string path, Metadata metadata = {}, std::FILE* out = nullptr)
      : trainer_(&trainer), path_(std::move(path)), metadata_(std::move(metadata)), out_(out) {}

  void start(StartReport const& report) override {
    fit_guard_.start("KeepBest", path_, report.resumed);
    best_by_ = report.best_by;
    if (auto const slash = path_.find_last_of('/'); slash != std::string::npos && slash > 0)
      detail::create_folder(path_.substr(0, slash));
    auto const step = report.resumed > 0 ? step_of(path_) : -1;
    if (step < 0 || step > report.resumed || step == report.best) return;
    auto const dot = path_.rfind('.'), slash = path_.rfind('/');
    auto const stem = path_.substr(0, slash == std::string::npos || dot > slash ? dot : std::string::npos);
    auto const renamed = stem + "_of_step_" + std::to_string(step) + path_.substr(stem.size());
    if (std::rename(path_.c_str(), renamed.c_str()) == 0) renamed_file_ = renamed;
  }
  void evaluation(EvaluationReport const& report) override {
    if (!report.best) return;
    auto metadata = metadata_;
    metadata.emplace_back(key, std::to_string(report.step));
    save_parameters(path_, trainer_->layout(), trainer_->values(), metadata, trainer_->buffers());
    if (!out_) return;
    auto const metric = std::find_if(report.metrics.begin(), report.metrics.end(),
                                     [&](auto const& each) { return each.first == best_by_; });
    std::fprintf(out_, "new best %s %.4f at step %lld, saved to %s\n", best_by_.c_str(),
                 metric == report.metrics.end() ? report.loss : metric->second, static_cast<long long>(report.step),
                 path_.c_str());
    std::fflush(out_);
  }
  [[nodiscard]] bool needs_evaluations() const override { return true; }

  /// Returns the new path of a renamed file that was not of the best evaluation, or an empty string.
  [[nodiscard]] std::string const& renamed_file() const noexcept { return renamed_file_; }
  [[deprecated("renamed_file")]] std::string const& put_aside() const noexcept { return renamed_file_; }

 private:
  static constexpr char const* key = "lockstep.step";  // metadata key: step of the evaluation

  /// Returns -1 if there is no such file, or it has no step.
  [[nodiscard]] static Index step_of(std::string const& path) {
    Index step = -1;
    try {
      auto const text = load_text(path, key);
      std::from_chars(text.data(), text.data() + text.size(), step);
    } catch (DataError const&) {
    }
    return step;
  }

  Trainer const* trainer_;
  std::string path_;
  Metadata metadata_;
  std::FILE* out_;
  std::string best_by_;
  std::string renamed_file_;
  detail::SingleFitGuard fit_guard_;
};

}}}  // namespace lockstep::train
