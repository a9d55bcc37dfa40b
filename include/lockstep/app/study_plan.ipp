// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include <lockstep/app/study_plan.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/scaling/study/study_run.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {

LOCKSTEP_INLINE bool StudyTrial::read_dry_run(std::string const& line, Index batch) {
  long long count = 0, each = 0, all = 0;
  if (std::sscanf(line.c_str(), "dry run: %lld samples, %lld steps an epoch, %lld in all", &count, &each, &all) != 3)
    return false;
  epochs = each > 0 ? static_cast<double>(all) / static_cast<double>(each) : 1;
  samples = counts_steps ? static_cast<double>(all * batch) : static_cast<double>(count) * epochs;
  return true;
}

LOCKSTEP_INLINE std::vector<scaling::StudyEntry> StudyPlan::entries(TrainerProgram const& trainer,
                                                                    int processors) const {
  auto counts = devices;
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  std::vector<std::pair<std::string, int>> ways;
  bool const has_single = std::count(parallel.begin(), parallel.end(), "single") > 0;
  if (has_single) ways.emplace_back("single", 1);
  for (int const count : counts)
    for (auto const* const way : {"dp", "ddp"})
      if (std::count(parallel.begin(), parallel.end(), way) > 0 && (count > 1 || !has_single))
        ways.emplace_back(way, count);
  auto const add_new = [](auto& list, auto const& each) {  // a run of an equal name would replace the first one
    if (std::find(list.begin(), list.end(), each) == list.end()) list.emplace_back(each);
  };
  std::vector<std::optional<Index>> batches;
  for (auto const batch : batch_sizes) add_new(batches, std::optional(batch));
  if (batches.empty()) batches.emplace_back();
  std::vector<std::string> paths;
  for (auto const& path : data) add_new(paths, path);
  if (paths.empty()) paths.emplace_back();
  std::map<std::string, std::string> names;  // of data sets
  std::set<std::string> used;
  for (auto const& path : paths) {
    auto base = path.empty() ? trainer.name() : scaling::StudyRun::dataset_name(path);
    std::replace(base.begin(), base.end(), '/', '_');
    auto name = base;
    for (int i = 2; !used.insert(name).second; ++i) name = base + "_" + std::to_string(i);
    names[path] = name;
  }

  std::vector<scaling::StudyEntry> out;
  for (int repetition = 1; repetition <= repeat; ++repetition)
    for (auto const& path : paths)
      for (auto const& batch : batches)
        for (auto const& [way, count] : ways) {
          scaling::StudyEntry entry;
          entry.name = names[path];
          if (batch) entry.name += "-b" + std::to_string(*batch);
          entry.name += "-" + way + (way == "single" ? "" : std::to_string(count));
          if (repeat > 1) entry.name += "-r" + std::to_string(repetition);
          entry.example = trainer.name();
          entry.parallel = way;
          entry.devices = count;
          entry.batch_size = batch;
          entry.data = path;
          entry.repeat = repetition;
          entry.processors = processors;
          entry.command = trainer.words();
          auto const add = [&](std::string const& flag, std::string const& value) {
            entry.command.insert(entry.command.end(), {flag, value});
          };
          if (!trainer.has("--threads") && !trainer.has("--config"))
            add("--threads", std::to_string(std::max(1, processors / counts.back())));
          if (batch) add("--batch-size", std::to_string(*batch));
          if (!path.empty()) add("--data", path);
          if (repeat > 1 && !trainer.has("--seed")) add("--seed", std::to_string(repetition));
          add("--parallel", way);
          if (count > 1) add(way == "dp" ? "--devices" : "--nproc", std::to_string(count));
          add("--save-dir", save_dir + "/" + entry.name);
          out.push_back(std::move(entry));
        }
  return out;
}

LOCKSTEP_INLINE double StudyPlan::seconds_of(scaling::StudyEntry const& entry, StudyTrial const& trial, Index threads) {
  auto const devices = static_cast<double>(entry.devices);
  auto const at_once = std::clamp(
      static_cast<double>(entry.processors) / static_cast<double>(std::max<Index>(1, threads)), 1.0, devices);
  auto const samples = trial.samples * (trial.counts_steps ? devices : 1);
  auto const training = trial.samples_per_second > 0 ? samples / (trial.samples_per_second * at_once) : 0;
  return trial.start_seconds + training + trial.evaluation_seconds * std::max(1.0, trial.epochs) / at_once;
}

LOCKSTEP_INLINE std::string duration(double seconds) {
  char text[32];
  if (seconds < 90)
    std::snprintf(text, sizeof text, "%.0f s", std::max(1.0, seconds));
  else if (seconds < 5400)
    std::snprintf(text, sizeof text, "%.0f min", seconds / 60);
  else
    std::snprintf(text, sizeof text, "%.1f h", seconds / 3600);
  return text;
}

LOCKSTEP_INLINE StudyState find_earlier_run(scaling::StudyEntry& entry, std::string const& save_dir) {
  namespace fs = std::filesystem;
  auto const folder = save_dir + "/" + entry.name, file = folder + scaling::StudyEntry::suffix;
  std::error_code error;
  if (!fs::exists(file, error)) {
    if (fs::exists(folder, error))
      throw ConfigError(folder + ": exists already, and is not of a study; name another --save-dir, or remove it");
    return StudyState::missing;
  }
  auto const earlier = scaling::StudyEntry::read(file);
  auto const &now = entry.command, &then = earlier.command;
  std::size_t at = 1;  // the program may have moved
  while (at < now.size() && at < then.size() && now[at] == then[at]) ++at;
  if (now.size() != then.size() || at < now.size()) {
    auto const word = [&](auto const& words) {
      return at < words.size() ? "\"" + words[at] + "\"" : std::string("nothing");
    };
    throw ConfigError(folder + ": holds a run with other flags, " + word(then) + " instead of " + word(now) +
                      "; name another --save-dir, or remove the folder and its entry file");
  }
  if (earlier.state != scaling::StudyEntry::State::finished || !fs::exists(folder + "/run.json", error))
    return StudyState::missing;
  entry = earlier;
  return StudyState::finished;
}

}}}  // namespace lockstep::app
