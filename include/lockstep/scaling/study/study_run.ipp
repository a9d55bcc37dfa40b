// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>
#include <utility>

#include <lockstep/core/error.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/scaling/detail/rounded.hpp>
#include <lockstep/scaling/saved_run.hpp>
#include <lockstep/scaling/study/study_run.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

namespace detail {

/// Readable lines of a metrics.jsonl. The members that a study uses have their types in them.
struct StepLog {
  std::vector<json::Value> lines;
  Index unread = 0;

  explicit StepLog(std::string const& directory) {
    std::ifstream in(directory + "/metrics.jsonl", std::ios::binary);
    for (std::string line; std::getline(in, line);) {
      if (line.empty()) continue;
      try {
        auto value = json::parse(line, "metrics.jsonl");
        static_cast<void>(value.at("kind").string());
        static_cast<void>(value.at("epoch").integer());
        if (auto const* const step = value.find("step")) static_cast<void>(step->integer());
        for (auto const* const name : {"samples", "samples_per_second"})
          if (auto const* const number = value.find(name)) static_cast<void>(number->number());
        lines.push_back(std::move(value));
      } catch (DataError const&) {
        ++unread;
      }
    }
  }

  /// Returns the run's samples in its first epochs as far as they are logged; 0 if they are not.
  [[nodiscard]] double samples_until(Index epochs) const {
    double samples = 0;
    for (auto const& line : lines)
      if (auto const* const count = line.find("samples");
          count && line.at("kind").string() == "step" && line.at("epoch").integer() < epochs)
        samples = std::max(samples, count->number());
    return samples;
  }
};

LOCKSTEP_INLINE std::string entry_of(std::string directory) {
  while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  return directory + StudyEntry::suffix;
}

[[nodiscard]] inline std::optional<StudyEntry> find_entry(std::string const& directory) {
  try {
    return StudyEntry::read(entry_of(directory));
  } catch (DataError const&) {
    return std::nullopt;
  }
}

LOCKSTEP_INLINE std::string folder_name(std::string const& directory) {
  std::filesystem::path const path(directory);
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

}  // namespace detail

LOCKSTEP_INLINE std::string StudyRun::dataset_name(std::string const& path) {
  std::string text = path;
  if (auto const pattern = text.find('='); text.starts_with("files:") && pattern != text.npos)
    return text.substr(6, pattern - 6);
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  std::filesystem::path const file(text);
  auto const stem = file.stem().string();
  for (auto const* const common : {"train", "training", "data", "index", "train_data", "training_data"})
    if (stem == common && file.has_parent_path() && file.parent_path().has_filename())
      return file.parent_path().filename().string();
  return stem.empty() ? text : stem;
}

LOCKSTEP_INLINE StudyRun StudyRun::read(std::string const& directory, Index warmup_epochs) {
  SavedRun const saved(directory);
  StudyRun out;
  out.directory = directory;
  out.run = ComparedRun::read(directory);
  out.entry = detail::find_entry(directory);
  saved.read([&](json::Value const& json) {
    auto const text = [&](char const* name) {
      auto const* const found = json.find(name);
      return found ? found->string() : std::string();
    };
    out.example = text("example");
    out.backend = text("backend");
    out.engine = text("engine");
    out.precision = text("precision");
    if (auto const* const count = json.find("parameters")) out.parameters = count->integer();
    auto const* const settings = json.find("settings");
    auto const setting = [&](char const* name) { return settings ? settings->find(name) : nullptr; };
    if (auto const* const path = setting("data"); path && path->is<std::string>()) out.data = path->string();
    if (auto const* const seed = setting("seed"); seed && seed->is<std::int64_t>()) out.repeat = seed->integer();
    out.batch_is_global = setting("global-batch-size") != nullptr;
    auto const effective = json.at("effective_batch_size").integer();
    out.batch = out.batch_is_global ? effective : effective / std::max<Index>(1, out.run.profile.shards);
    for (auto const& seconds : json.at("epoch_seconds").array()) out.epoch_seconds.push_back(seconds.number());
    return 0;
  });
  out.dataset = out.data.empty() ? (out.example.empty() ? "runs" : out.example) : dataset_name(out.data);
  try {
    out.workload = saved.workload();
  } catch (DataError const&) {
  }

  auto const epochs = static_cast<Index>(out.epoch_seconds.size());
  detail::StepLog const log(directory);
  out.unread_lines = log.unread;
  if (warmup_epochs < 1 || warmup_epochs >= epochs) return out;
  double all_seconds = 0, left_seconds = 0;
  for (Index i = 0; i < epochs; ++i) {
    auto const seconds = out.epoch_seconds[static_cast<std::size_t>(i)];
    all_seconds += seconds;
    if (i >= warmup_epochs) left_seconds += seconds;
  }
  auto const samples = out.run.profile.samples_per_second * all_seconds;
  auto before = log.samples_until(warmup_epochs);
  if (before <= 0 || before >= samples)
    before = samples * static_cast<double>(warmup_epochs) / static_cast<double>(epochs);
  if (left_seconds > 0) out.run.profile.samples_per_second = (samples - before) / left_seconds;
  out.epoch_seconds.erase(out.epoch_seconds.begin(), out.epoch_seconds.begin() + warmup_epochs);
  out.left_out_epochs = warmup_epochs;
  return out;
}

LOCKSTEP_INLINE std::string StudyRun::group_key() const {
  auto key = example + "\n" + data + "\n" + backend + "\n" + precision + "\n" + std::to_string(batch) +
             (batch_is_global ? " all" : " each") + "\n";
  for (auto const& [name, value] : run.settings)
    if (name != "seed" && name != "precision") key += name + "=" + value + "\n";
  return key;
}

LOCKSTEP_INLINE MissingRun MissingRun::unfinished(std::string const& directory, std::string const& why) {
  MissingRun out{.name = detail::folder_name(directory), .directory = directory, .reason = {}};
  out.entry = detail::find_entry(directory);
  detail::StepLog const log(directory);
  Index step = 0, epoch = 0;
  std::vector<double> rates;
  for (auto const& line : log.lines) {
    auto const* const rate = line.find("samples_per_second");
    if (!rate || !line.find("step")) continue;
    step = std::max<Index>(step, line.at("step").integer());
    epoch = std::max<Index>(epoch, line.at("epoch").integer());
    rates.push_back(rate->number());
  }
  out.reason = why.empty() ? "unfinished" : why;
  if (!rates.empty()) {
    std::nth_element(rates.begin(), rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2), rates.end());
    out.reason += "; its log reaches step " + std::to_string(step) + " in epoch " + std::to_string(epoch + 1) +
                  ", with a median of " + detail::rounded(rates[rates.size() / 2], 1) + " samples/s";
  }
  if (log.unread > 0) out.reason += "; lines of the log that cannot be read: " + std::to_string(log.unread);
  return out;
}

LOCKSTEP_INLINE FoundRuns FoundRuns::below(std::vector<std::string> const& roots) {
  namespace fs = std::filesystem;
  FoundRuns out;
  std::set<std::string> seen;
  std::error_code error;
  auto const look = [&](fs::path const& folder) {
    bool const complete = fs::exists(folder / "run.json", error);
    if (!complete && !fs::exists(folder / "metrics.jsonl", error)) return false;
    if (seen.insert(fs::weakly_canonical(folder, error).string()).second)
      (complete ? out.finished : out.unfinished).push_back(folder.string());
    return true;
  };
  for (auto const& root : roots) {
    if (!fs::is_directory(root, error)) throw DataError(root + ": is no folder; give folders that hold saved runs");
    auto const top = fs::path(root);
    if (look(top.has_filename() ? top : top.parent_path())) continue;
    fs::recursive_directory_iterator at(root, fs::directory_options::skip_permission_denied, error), end;
    for (; at != end; at.increment(error)) {
      if (error) break;
      if (at->is_directory(error) && !at->is_symlink(error)) {
        if (look(at->path())) at.disable_recursion_pending();
      } else if (auto const file = at->path().string(); file.ends_with(StudyEntry::suffix)) {
        if (seen.insert(fs::weakly_canonical(file, error).string()).second) out.entries.push_back(file);
      }
    }
  }
  for (auto* const list : {&out.finished, &out.unfinished, &out.entries}) std::sort(list->begin(), list->end());
  if (out.finished.empty() && out.unfinished.empty() && out.entries.empty())
    throw DataError(roots[0] +
                    ": there is no run in it or below it; give folders of runs that were saved with --save-dir");
  return out;
}

}}}  // namespace lockstep::scaling
