// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdio>
#include <string>
#include <utility>

#include <lockstep/core/error.hpp>
#include <lockstep/train/checkpoint/checkpoint.hpp>
#include <lockstep/train/detail/single_fit_guard.hpp>
#include <lockstep/train/files/safetensors.hpp>
#include <lockstep/train/logs/observer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

namespace detail {

/// The part of KeepBest that does not depend on the type of the trainer.
class BestFile : public Observer {
 public:
  void start(StartReport const& report) override;
  void evaluation(EvaluationReport const& report) override;
  void finish(RunRecord const& record) override;
  [[nodiscard]] bool needs_evaluations() const override { return true; }

  /// Returns the new path of a renamed file that was not of the best evaluation, or an empty string.
  [[nodiscard]] std::string const& renamed_file() const noexcept { return renamed_file_; }
  [[deprecated("renamed_file")]] std::string const& put_aside() const noexcept { return renamed_file_; }

 protected:
  BestFile(std::string path, Metadata metadata, std::FILE* out);

 private:
  static constexpr char const* key = "lockstep.step";  // metadata key: step of the evaluation

  virtual void save(std::string const& path, Metadata const& metadata) const = 0;
  [[nodiscard]] virtual nn::ParameterLayout const& layout() const = 0;
  /// Returns -1 if there is no such file, or it has no step.
  [[nodiscard]] static Index step_of(std::string const& path);

  std::string path_;
  std::string file_;  // the path, absolute, as of the start of the fit
  Metadata metadata_;
  std::FILE* out_;
  std::string best_by_;
  bool has_best_ = false;
  std::string renamed_file_;
  SingleFitGuard fit_guard_;
};

}  // namespace detail

/// Saves the trainer's parameters, buffers and `metadata` after each evaluation that is the best so far by
/// `FitOptions::best_by`. The file appears complete or not at all. Its folder is created before the first step. A
/// relative path counts from the working directory at the start of the fit. A fit without evaluations is rejected.
/// A resumed run may be judged by another metric, by which another evaluation was the best. The existing file is then
/// renamed, see `renamed_file()`.
/// For one rank only. The trainer must outlive it. If `out` is given, it receives a line for each file: "new best f1
/// 0.8123 at step 120, saved to best.safetensors", or at the end a line that no evaluation has a number for `best_by`,
/// so that there is no file.
/// @throws DataError, which ends the run, if the folder cannot be created or the file cannot be written; ConfigError
/// before the first step if `metadata` cannot be saved, and at the start of a second fit, whose best evaluation may be
/// worse
template <class Trainer>
class KeepBest final : public detail::BestFile {
 public:
  /// Stores the path; the first file appears after the first evaluation.
  /// @param metadata strings saved with the parameters
  KeepBest(Trainer const& trainer, std::string path, Metadata metadata = {}, std::FILE* out = nullptr)
      : BestFile(std::move(path), std::move(metadata), out), trainer_(&trainer) {}

 private:
  void save(std::string const& path, Metadata const& metadata) const override {
    detail::write_safetensors(path, trainer_->layout(), trainer_->values().data(), trainer_->buffers().data(), {},
                              metadata);
  }
  [[nodiscard]] nn::ParameterLayout const& layout() const override { return trainer_->layout(); }

  Trainer const* trainer_;
};

}}}  // namespace lockstep::train

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/checkpoint/keep_best.ipp>
#endif
