// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <charconv>

#include <lockstep/train/checkpoint/keep_best.hpp>
#include <lockstep/train/logs/run_record.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE void BestFile::start(StartReport const& report) {
  fit_guard_.start("KeepBest", path_, report.resumed);
  best_by_ = report.best_by;
  has_best_ = report.best > 0;
  file_ = absolute_path(path_);
  check_metadata("KeepBest: " + path_, metadata_);
  auto const folder = path_.find_last_of('/');
  try_folder(folder == std::string::npos ? "."
             : folder == 0               ? "/"
                                         : path_.substr(0, folder),
             file_bytes(path_, layout(), 0, metadata_));
  auto const step = report.resumed > 0 ? step_of(path_) : -1;
  if (step < 0 || step > report.resumed || step == report.best) return;
  auto const dot = path_.rfind('.'), slash = path_.rfind('/');
  auto const stem = path_.substr(0, slash == std::string::npos || dot > slash ? dot : std::string::npos);
  auto const renamed = stem + "_of_step_" + std::to_string(step) + path_.substr(stem.size());
  if (std::rename(path_.c_str(), renamed.c_str()) == 0) renamed_file_ = renamed;
}

LOCKSTEP_COLD_INLINE void BestFile::evaluation(EvaluationReport const& report) {
  if (!report.best) return;
  has_best_ = true;
  auto metadata = metadata_;
  metadata.emplace_back(key, std::to_string(report.step));
  save(file_, metadata);
  if (!out_) return;
  auto const metric = std::find_if(report.metrics.begin(), report.metrics.end(),
                                   [&](auto const& each) { return each.first == best_by_; });
  std::fprintf(out_, "new best %s %.4f at step %lld, saved to %s\n", best_by_.c_str(),
               metric == report.metrics.end() ? report.loss : metric->second, static_cast<long long>(report.step),
               path_.c_str());
  std::fflush(out_);
}

LOCKSTEP_COLD_INLINE void BestFile::finish(RunRecord const& record) {
  if (!out_ || has_best_ || record.evaluations.empty()) return;
  std::fprintf(out_, "no evaluation is the best, because none has a number for %s: %s was not written\n",
               best_by_.c_str(), path_.c_str());
  std::fflush(out_);
}

LOCKSTEP_COLD_INLINE Index BestFile::step_of(std::string const& path) {
  Index step = -1;
  try {
    auto const text = load_text(path, key);
    std::from_chars(text.data(), text.data() + text.size(), step);
  } catch (DataError const&) {
  }
  return step;
}

LOCKSTEP_COLD_INLINE BestFile::BestFile(std::string path, Metadata metadata, std::FILE* out)
    : path_(std::move(path)), metadata_(std::move(metadata)), out_(out) {}

}}}  // namespace lockstep::train::detail
