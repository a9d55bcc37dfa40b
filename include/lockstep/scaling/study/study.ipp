// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include <lockstep/core/error.hpp>
#include <lockstep/core/nearest.hpp>
#include <lockstep/memory/space.hpp>
#include <lockstep/scaling/detail/escaped.hpp>
#include <lockstep/scaling/detail/rounded.hpp>
#include <lockstep/scaling/scaling_report.hpp>
#include <lockstep/scaling/study/study.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

namespace detail {

/// Returns the milliseconds that a run's loader needs for a step's samples; 0: less than a step.
[[nodiscard]] LOCKSTEP_INLINE double load_ms(StepProfile const& profile) {
  double most = 0;
  for (auto const& rank : profile.ranks) most = std::max(most, rank.loader_ms);
  if (most > 0) return most;
  auto const step_ms = profile.step_ms();
  return profile.data_wait_ms > step_ms / 100 ? step_ms - profile.communication_ms : 0;
}

/// Scales what a rank computes so that one device is predicted to have a measured rate.
[[nodiscard]] LOCKSTEP_INLINE Workload calibrated(Workload work, double samples_per_second, Scaling scaling) {
  auto const predicted = predict(work, 1, parallel::CollectiveCost{}, scaling).samples_per_second;
  if (!(predicted > 0 && samples_per_second > 0)) return work;
  auto const factor = predicted / samples_per_second;
  for (auto* const seconds :
       {&work.pass_seconds, &work.optimizer_seconds, &work.other_seconds, &work.load_seconds, &work.spread_seconds})
    *seconds *= factor;
  for (auto& part : work.gradients) part.ready_seconds *= factor;
  return work;
}

}  // namespace detail

LOCKSTEP_INLINE Prediction predict_data_parallel(Workload const& work, StepProfile const& measured, Index devices,
                                                 Scaling scaling) {
  auto const n = static_cast<double>(devices),
             share = scaling == Scaling::weak ? 1 : static_cast<double>(work.ranks) / n;
  auto const others = static_cast<double>(std::max<Index>(1, measured.shards - 1));
  Prediction out;
  out.ranks = devices;
  out.pass_seconds = work.pass_seconds * share;
  auto const waits = [&](Index count) {
    return work.spread_seconds * std::sqrt(share) * detail::expected_maximum(count);
  };
  out.slowest_seconds = devices > 1 ? waits(devices) : 0;
  auto const sum_seconds = measured.communication_ms / 1e3 - (measured.shards > 1 ? waits(measured.shards) : 0);
  out.exposed_seconds = std::max(0.0, sum_seconds) * (n - 1) / others;
  out.optimizer_seconds = measured.optimizer_ms / 1e3;
  auto const busy =
      out.pass_seconds + out.exposed_seconds + out.slowest_seconds + out.optimizer_seconds + work.other_seconds;
  // Its loader made a batch for each of its devices.
  auto const loaded_ms = detail::load_ms(measured) * n / static_cast<double>(std::max<Index>(1, measured.shards)) *
                         (scaling == Scaling::weak ? 1 : static_cast<double>(measured.shards) / n);
  out.data_seconds = std::max(0.0, loaded_ms / 1e3 - busy);
  out.step_seconds = busy + out.data_seconds;
  out.samples_per_second = out.step_seconds > 0 ? work.samples * share * n / out.step_seconds : 0;
  return out;
}

LOCKSTEP_INLINE StudyRun const& StudyGroup::any_run() const {
  for (auto const& one : configurations)
    if (!one.runs.empty()) return one.runs[0];
  throw Error("a group of a study has no run");
}

LOCKSTEP_INLINE Configuration const* StudyGroup::fastest() const noexcept {
  Configuration const* best = nullptr;
  for (auto const& one : configurations)
    if (one.has_speed() && (!best || one.samples_per_second.mean > best->samples_per_second.mean)) best = &one;
  return best;
}

LOCKSTEP_INLINE Configuration const* StudyGroup::find(std::string const& parallel, Index devices) const noexcept {
  for (auto const* const list : {&configurations, &predicted})
    for (auto const& one : *list)
      if (one.parallel == parallel && one.devices == devices) return &one;
  return nullptr;
}

LOCKSTEP_INLINE Index StudyGroup::most_devices(std::string const& parallel) const noexcept {
  Index most = 0;
  for (auto const& one : configurations)
    if (one.parallel == parallel && one.has_speed()) most = std::max(most, one.devices);
  return most;
}

LOCKSTEP_INLINE std::string StudyGroup::summary() const {
  auto const* const best = fastest();
  if (!best) return title + ": no run has a speed.";
  auto const rate = detail::rounded(best->samples_per_second.mean, 1) + " samples/s";
  if (best->devices == 1) {
    Configuration const* most = nullptr;
    for (auto const& one : configurations)
      if (one.has_speed() && one.devices > 1 && (!most || one.speed_up.mean > most->speed_up.mean)) most = &one;
    if (!most) return title + ": " + best->label() + " trains " + rate + "; there is no run on several devices.";
    return title + ": negative scaling. No run on several devices is faster than " + best->label() + " (" + rate +
           "); the best, " + most->label() + ", has " + detail::rounded(most->speed_up.mean, 2) + " times its speed.";
  }
  auto text = title + ": " + best->label() + " is fastest with " + rate;
  if (best->speed_up.is_known())
    text += ", " + detail::rounded(best->speed_up.mean, 2) + " times the speed of one device" +
            (baseline_kind == BaselineKind::predicted ? " as predicted" : "") + " and " +
            detail::rounded(100 * best->efficiency.mean, 0) + " % of ideal";
  return text + ".";
}

LOCKSTEP_INLINE std::string StudyGroup::baseline_summary() const {
  if (baseline_kind == BaselineKind::measured) {
    auto const count = baseline.samples_per_second.count;
    return "Baseline: a single device, measured in " + std::to_string(count) + (count == 1 ? " run." : " runs.");
  }
  if (baseline_kind == BaselineKind::none)
    return "Baseline: none. No run on a single device is here, and no run timed its steps, so there is no speed-up.";
  return "Baseline: predicted, " + detail::rounded(baseline.samples_per_second.mean, 1) +
         " samples/s. No run on a single device is here; speed-up and efficiency are relative to a prediction.";
}

LOCKSTEP_INLINE std::string StudyGroup::parameters_equal(Index devices) const {
  auto const* const dp = find("dp", devices);
  auto const* const ddp = find("ddp", devices);
  if (!dp || !ddp) return "n/a";
  std::string result = "n/a";
  for (auto const& one : dp->runs)
    for (auto const& other : ddp->runs) {
      if (one.repeat != other.repeat || one.run.parameters_sha256.empty()) continue;
      auto const agreement = other.run.agreement(one.run);
      if (agreement == Agreement::none) return "differ";
      if (agreement == Agreement::rounding) result = "rounding";
      if (agreement == Agreement::equal && result == "n/a") result = "equal";
    }
  return result;
}

namespace detail {

LOCKSTEP_INLINE bool comes_before(Configuration const& a, Configuration const& b) {
  auto const rank = [](std::string const& parallel) { return parallel == "single" ? 0 : parallel == "dp" ? 1 : 2; };
  if (a.devices != b.devices) return a.devices < b.devices;
  if (rank(a.parallel) != rank(b.parallel)) return rank(a.parallel) < rank(b.parallel);
  return a.engine != b.engine ? a.engine < b.engine : a.threads < b.threads;
}

/// Sets what predictions of a group need, its baseline and its predicted rows.
LOCKSTEP_INLINE void add_predictions(StudyGroup& group, StudyOptions const& options) {
  auto& all = group.configurations;
  StudyRun const* source = nullptr;  // the median run on the fewest devices, of those that timed their steps
  for (auto one = all.begin(); one != all.end() && !source; ++one) {
    std::vector<StudyRun const*> timed;
    for (auto const& run : one->runs)
      if (run.workload) timed.push_back(&run);
    std::sort(timed.begin(), timed.end(),
              [](auto const* a, auto const* b) { return a->workload->pass_seconds < b->workload->pass_seconds; });
    if (!timed.empty()) source = timed[timed.size() / 2];
  }
  auto const alone =
      std::find_if(all.begin(), all.end(), [](auto const& one) { return one.devices == 1 && one.has_speed(); });
  bool const on_gpus = source && source->backend == CudaSpace::name;
  group.fabric = Fabric::of(options.link, on_gpus, options.alpha_us, options.beta_gb_s);
  double samples_per_epoch = 0;
  for (auto const& one : all) samples_per_epoch = std::max(samples_per_epoch, one.samples_per_epoch());
  if (source) {
    group.workload = source->workload;
    if (alone != all.end() && source->workload->ranks == 1)  // repeats and epochs differ from the run's mean step
      group.workload = calibrated(*source->workload, alone->profile.samples_per_second, group.scaling);
    auto const& work = *group.workload;
    auto const all_samples = work.samples * static_cast<double>(work.ranks);
    auto const samples = [&](Index n) {
      return group.scaling == Scaling::weak ? work.samples * static_cast<double>(n) : all_samples;
    };
    std::vector<Index> counts{1};
    for (auto const n : ScalingReport::powers_of_two()) counts.push_back(n);
    for (auto const n : counts)
      if (group.scaling == Scaling::weak || static_cast<double>(n) <= all_samples)
        group.curve.push_back(predict(work, n, group.fabric, group.scaling));
    if (alone == all.end()) {
      auto const one = group.curve[0];
      group.baseline = Configuration::predicted_from("single", one, samples(1), samples_per_epoch);
      group.baseline.threads = group.baseline.profile.threads = source->run.profile.threads;
      group.baseline_kind = BaselineKind::predicted;
    }
    auto const add = [&](char const* parallel, Prediction const& prediction) {
      auto row = Configuration::predicted_from(parallel, prediction, samples(prediction.ranks), samples_per_epoch);
      row.threads = row.profile.threads = source->run.profile.threads;
      // Memory per device does not depend on the number of devices if the batch of each stays equal.
      if (auto const most = group.most_devices(parallel); most > 1) {
        auto const* const like = group.find(parallel, most);
        row.first_device_bytes = like->first_device_bytes;
        row.other_devices_bytes = like->other_devices_bytes;
      }
      group.predicted.push_back(std::move(row));
    };
    constexpr auto n = StudyGroup::predicted_devices;
    bool const possible = group.scaling == Scaling::weak || static_cast<double>(n) <= all_samples;
    if (auto const most = group.most_devices("dp"); possible && most > 1 && !group.find("dp", n))
      add("dp", predict_data_parallel(work, group.find("dp", most)->profile, n, group.scaling));
    if (possible && !group.find("ddp", n)) add("ddp", predict(work, n, group.fabric, group.scaling));
  }
  if (alone != all.end()) {
    group.baseline = *alone;
    group.baseline_kind = BaselineKind::measured;
  }
  if (group.baseline_kind == BaselineKind::none) return;
  for (auto* const list : {&all, &group.predicted})
    for (auto& one : *list) one.compare_with(group.baseline.profile, group.baseline.samples_per_second);
  group.baseline.compare_with(group.baseline.profile, group.baseline.samples_per_second);
}

/// Adds a run that failed to the configuration of a group, if it belongs to one.
LOCKSTEP_INLINE void add_failure(std::vector<StudyGroup>& groups, MissingRun& run) {
  if (!run.entry || !run.failed) return;
  auto const& entry = *run.entry;
  auto const dataset = entry.data.empty() ? entry.example : StudyRun::dataset_name(entry.data);
  for (auto& group : groups) {
    auto const& known = group.any_run();
    if (group.dataset != dataset || known.example != entry.example) continue;
    if (entry.batch_size && !known.batch_is_global && *entry.batch_size != known.batch) continue;
    auto at = std::find_if(group.configurations.begin(), group.configurations.end(), [&](auto const& one) {
      return one.parallel == entry.parallel && one.devices == entry.devices;
    });
    if (at == group.configurations.end()) {
      Configuration failed;
      failed.parallel = entry.parallel;
      failed.devices = entry.devices;
      at = group.configurations.insert(group.configurations.end(), std::move(failed));
    }
    ++at->failed;
    at->message = run.reason;
    run.is_in_group = true;
    return;
  }
}

/// Separates runs of models with other numbers of parameters. Repeats with other seeds may differ in it: a vocabulary
/// depends on which texts are split off for evaluation.
[[nodiscard]] LOCKSTEP_INLINE std::vector<std::vector<StudyRun>> by_model(std::vector<StudyRun> runs) {
  std::map<Index, Index> of_seed;  // parameters
  std::map<Index, std::vector<StudyRun>> models;
  bool one_model = true;
  for (auto const& run : runs) one_model &= of_seed.emplace(run.repeat, run.parameters).first->second == run.parameters;
  for (auto& run : runs) models[one_model ? 0 : run.parameters].push_back(std::move(run));
  std::vector<std::vector<StudyRun>> out;
  for (auto& [parameters, alike] : models) out.push_back(std::move(alike));
  return out;
}

LOCKSTEP_INLINE StudyGroup group_of(std::vector<StudyRun> runs) {
  auto const& first = runs[0];
  StudyGroup group{.dataset = first.dataset, .title = first.dataset, .slug = {}, .description = {}, .apart = {}};
  group.metric = first.run.metric;
  group.scaling = first.batch_is_global ? Scaling::strong : Scaling::weak;
  auto const [least, most] = std::minmax_element(
      runs.begin(), runs.end(), [](auto const& a, auto const& b) { return a.parameters < b.parameters; });
  group.description = first.example + ", " + std::to_string(least->parameters) +
                      (least->parameters == most->parameters ? "" : " to " + std::to_string(most->parameters)) +
                      " parameters, batch " + std::to_string(first.batch) +
                      (first.batch_is_global ? " over all devices" : " per device") +
                      (first.precision.empty() || first.precision == "fp32" ? "" : ", " + first.precision) +
                      (first.backend == CudaSpace::name ? ", GPUs" : "");
  std::map<std::string, std::vector<StudyRun>> by_configuration;
  for (auto& run : runs) {
    auto const& profile = run.run.profile;
    auto const key = run.run.parallel + " " + std::to_string(profile.shards) + " " + run.engine + " " +
                     std::to_string(profile.threads) + " " + std::to_string(run.run.ranks);
    by_configuration[key].push_back(std::move(run));
  }
  for (auto& [key, same] : by_configuration) group.configurations.push_back(Configuration::of(std::move(same)));
  std::sort(group.configurations.begin(), group.configurations.end(), comes_before);
  return group;
}

/// Returns the settings of a run, except its seed, that differ from another's; else the numbers of parameters.
[[nodiscard]] LOCKSTEP_INLINE std::string differences(StudyRun const& one, StudyRun const& other) {
  auto seeded = one.run;  // with the other's seed
  seeded.settings.erase("seed");
  if (auto const seed = other.run.settings.find("seed"); seed != other.run.settings.end())
    seeded.settings.insert(*seed);
  auto const settings = seeded.differences(other.run);
  if (!settings.empty() || one.parameters == other.parameters) return settings;
  return "parameters " + std::to_string(one.parameters) + " (" + std::to_string(other.parameters) + ")";
}

/// Returns names for files that differ between groups.
LOCKSTEP_INLINE void name_files(std::vector<StudyGroup>& groups) {
  std::map<std::string, int> count;
  for (auto const& group : groups) ++count[file_name(group.dataset)];
  std::set<std::string> used;
  for (auto& group : groups) {
    group.slug = file_name(group.dataset);
    if (count[group.slug] > 1) {
      auto const& run = group.any_run();
      group.slug += "_batch" + std::to_string(run.batch) + (run.batch_is_global ? "_global" : "");
      group.title += ", batch " + std::to_string(run.batch) + (run.batch_is_global ? " over all devices" : "");
    }
    auto const name = group.slug, title = group.title;
    for (int i = 2; !used.insert(group.slug).second; ++i) {
      group.slug = name + "_" + std::to_string(i);
      group.title = title + " (" + std::to_string(i) + ")";
    }
  }
}

}  // namespace detail

LOCKSTEP_INLINE Study Study::of(std::vector<StudyRun> runs, std::vector<MissingRun> missing,
                                StudyOptions const& options) {
  Study out;
  out.options = options;
  out.missing = std::move(missing);
  Index unread = 0, warmed = 0, short_runs = 0;
  std::vector<std::pair<std::string, std::vector<StudyRun>>> by_group;
  for (auto& run : runs) {
    unread += run.unread_lines;
    warmed += run.left_out_epochs > 0;
    short_runs += options.warmup_epochs > 0 && run.left_out_epochs == 0;
    auto key = run.group_key();
    auto at = std::find_if(by_group.begin(), by_group.end(), [&](auto const& one) { return one.first == key; });
    if (at == by_group.end()) at = by_group.insert(by_group.end(), {std::move(key), {}});
    at->second.push_back(std::move(run));
  }
  for (auto& [key, same] : by_group)
    for (auto& alike : detail::by_model(std::move(same))) out.groups.push_back(detail::group_of(std::move(alike)));
  std::stable_sort(out.groups.begin(), out.groups.end(), [](auto const& a, auto const& b) {
    return a.dataset != b.dataset ? a.dataset < b.dataset : a.any_run().batch < b.any_run().batch;
  });
  detail::name_files(out.groups);
  for (std::size_t i = 0; i < out.groups.size(); ++i) {
    auto& group = out.groups[i];
    for (std::size_t j = 0; j < i && group.apart.empty(); ++j)
      if (out.groups[j].dataset == group.dataset)
        group.apart = detail::differences(group.any_run(), out.groups[j].any_run());
  }
  for (auto& run : out.missing) detail::add_failure(out.groups, run);
  for (auto& group : out.groups) {
    std::stable_sort(group.configurations.begin(), group.configurations.end(), detail::comes_before);
    detail::add_predictions(group, options);
  }
  if (out.groups.size() > 1)
    out.notes.push_back("The runs differ in program, model, data set or batch. They are shown apart, in " +
                        std::to_string(out.groups.size()) + " groups.");
  if (warmed > 0)
    out.notes.push_back("Epoch times and rates leave out the first " + std::to_string(options.warmup_epochs) +
                        (options.warmup_epochs == 1 ? " epoch" : " epochs") +
                        " of each run. Phases are means over whole runs.");
  if (short_runs > 0)
    out.notes.push_back(std::to_string(short_runs) + " runs have no epoch after the " +
                        std::to_string(options.warmup_epochs) + " of the warm-up. Their whole time counts.");
  if (unread > 0)
    out.notes.push_back("Lines of logs that could not be read: " + std::to_string(unread) + ". The others were used.");
  auto const failed = std::count_if(out.missing.begin(), out.missing.end(), [](auto const& run) { return run.failed; });
  if (failed > 0) out.notes.push_back("Runs that failed: " + std::to_string(failed) + ".");
  if (auto const others = static_cast<std::ptrdiff_t>(out.missing.size()) - failed; others > 0)
    out.notes.push_back("Runs without a result: " + std::to_string(others) + ". They are not in the tables.");
  return out;
}

LOCKSTEP_INLINE Study Study::read(std::vector<std::string> const& roots, StudyOptions const& options) {
  auto const found = FoundRuns::below(roots);
  std::vector<StudyRun> runs;
  std::vector<MissingRun> missing;
  std::set<std::string> known, datasets;                // known: entries of runs that were found
  auto const canonical = [](std::string const& path) {  // roots may name one folder in several ways
    std::error_code error;
    return std::filesystem::weakly_canonical(path, error).string();
  };
  auto const wanted = [&](std::string const& dataset) {
    datasets.insert(dataset);
    return options.datasets.empty() || std::count(options.datasets.begin(), options.datasets.end(), dataset) > 0;
  };
  for (auto const& directory : found.finished) {
    known.insert(canonical(detail::entry_of(directory)));
    try {
      auto run = StudyRun::read(directory, options.warmup_epochs);
      if (wanted(run.dataset)) runs.push_back(std::move(run));
    } catch (DataError const& error) {
      missing.push_back(MissingRun::unfinished(directory, std::string("unreadable: ") + error.what()));
    }
  }
  auto const is_failed = [](MissingRun const& run) {
    return run.entry && run.entry->state == StudyEntry::State::failed;
  };
  auto const message = [](StudyEntry const& entry) {
    return entry.message.empty() ? "ended with exit code " + std::to_string(entry.exit_code) : entry.message;
  };
  for (auto const& directory : found.unfinished) {
    known.insert(canonical(detail::entry_of(directory)));
    auto run = MissingRun::unfinished(directory, "");
    if (is_failed(run)) {
      run.failed = true;
      run.reason = message(*run.entry);
    }
    missing.push_back(std::move(run));
  }
  for (auto const& file : found.entries) {
    if (known.contains(canonical(file))) continue;
    MissingRun run{.name = detail::folder_name(file), .directory = file, .reason = "not started, or not finished"};
    try {
      run.entry = StudyEntry::read(file);
      run.name = run.entry->name;
      if (is_failed(run)) {
        run.failed = true;
        run.reason = message(*run.entry);
      }
    } catch (DataError const& error) {
      run.reason = error.what();
    }
    missing.push_back(std::move(run));
  }
  std::erase_if(missing, [&](auto const& run) {
    if (!run.entry) return false;
    auto const& data = run.entry->data;
    return !wanted(data.empty() ? run.entry->example : StudyRun::dataset_name(data));
  });
  for (auto const& name : options.datasets)
    if (!datasets.contains(name)) {
      std::vector<std::string> const names(datasets.begin(), datasets.end());
      throw ConfigError("--datasets " + name + ": no run has this data set" +
                        (names.empty() ? "" : "; the nearest is " + nearest(name, names)));
    }
  return of(std::move(runs), std::move(missing), options);
}

LOCKSTEP_INLINE std::size_t Study::run_count() const noexcept {
  std::size_t count = 0;
  for (auto const& group : groups)
    for (auto const& one : group.configurations) count += one.runs.size();
  return count;
}

}}}  // namespace lockstep::scaling
