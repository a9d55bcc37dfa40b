// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/option_descriptor.hpp>
#include <lockstep/data/loader/data_loader_options.hpp>
#include <lockstep/launch/options.hpp>
#include <lockstep/parallel/distributed_options.hpp>
#include <lockstep/scaling/compared_run.hpp>
#include <lockstep/train/trainer/fit_options.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

LOCKSTEP_INLINE ComparedRun ComparedRun::read(std::string const& directory) {
  SavedRun const saved(directory);
  auto const profile = saved.profile();
  return saved.read([&](json::Value const& json) {
    auto const& final = json.at("final");
    auto const* const reproducible = json.find("reproducible");
    auto const* const eval_loss = final.find("eval_loss");
    ComparedRun run{.name = saved.name(),
                    .parallel = json.at("parallel").string(),
                    .ranks = json.at("world_size").integer(),
                    .devices = json.at("devices").integer(),
                    .steps = json.at("steps").integer(),
                    .shards = reproducible ? reproducible->integer() : profile.shards,
                    .profile = profile,
                    .has_evaluation = eval_loss != nullptr,
                    .loss = eval_loss ? number(*eval_loss) : std::nan(""),
                    .parameters_sha256 = json.at("parameters_sha256").string(),
                    .device_bytes = {},
                    .settings = settings_of(json)};
    if (auto const* const samples = json.find("samples"); samples && profile.samples_per_second > 0)
      run.training_seconds = samples->number() / profile.samples_per_second;
    if (auto const* const peaks = json.find("peak_bytes_per_device"))
      for (auto const& peak : peaks->array()) run.device_bytes.push_back(peak.number());
    run.take_metric(final);
    if (auto const* const samples = final.find("eval_samples")) run.evaluated = samples->integer();
    return run;
  });
}

LOCKSTEP_INLINE bool ComparedRun::has_equal_work(ComparedRun const& other) const noexcept {
  return profile.effective_batch_size == other.profile.effective_batch_size && steps == other.steps;
}

LOCKSTEP_INLINE std::string ComparedRun::differences(ComparedRun const& other) const {
  std::string all;
  if (settings.empty() || other.settings.empty()) return all;  // written by a version without settings
  auto const of = [](ComparedRun const& one, std::string const& setting) {
    auto const found = one.settings.find(setting);
    return found == one.settings.end() ? "not given" : found->second;
  };
  auto names = settings;
  names.insert(other.settings.begin(), other.settings.end());
  for (auto const& each : names) {
    auto const mine = of(*this, each.first), theirs = of(other, each.first);
    if (mine != theirs) all += (all.empty() ? "" : ", ") + each.first + " " + mine + " (" + theirs + ")";
  }
  return all;
}

LOCKSTEP_INLINE Agreement ComparedRun::agreement(ComparedRun const& other) const {
  if (!differences(other).empty()) return Agreement::other_settings;
  if (!has_equal_work(other)) return Agreement::other_work;
  if (parameters_sha256 == other.parameters_sha256) return Agreement::equal;
  if (shards == other.shards) return Agreement::none;
  if (!has_evaluation || !other.has_evaluation) return Agreement::unknown;
  return std::abs(loss - other.loss) <= max_rounding_difference ? Agreement::rounding : Agreement::none;
}

LOCKSTEP_INLINE std::string ComparedRun::agreement_summary(ComparedRun const& other) const {
  auto const pair = name + " and " + other.name;
  auto const agrees = agreement(other);
  if (agrees == Agreement::other_settings)
    return name + " need not agree with " + other.name + ": it has " + differences(other) + ".";
  if (agrees == Agreement::other_work) return pair + " took other steps or batches, so they need not agree.";
  if (agrees == Agreement::equal) return pair + " agree: their parameters are equal bit for bit.";
  if (agrees == Agreement::unknown)
    return pair + " cannot be compared: their parameters may differ by rounding, and there is no evaluation of both.";
  if (!has_evaluation || !other.has_evaluation)
    return pair + " DISAGREE: their parameters should be equal bit for bit.";
  return pair + (agrees == Agreement::rounding ? " agree" : " DISAGREE") + ": their evaluation losses are " +
         detail::rounded(std::abs(loss - other.loss), 4) + " apart (" +
         (shards == other.shards ? "their parameters should be equal bit for bit"
                                 : "at most " + detail::rounded(max_rounding_difference, 2) + " is due to rounding") +
         ").";
}

LOCKSTEP_INLINE ComparedRun const& ComparedRun::reference_run(std::span<ComparedRun const> runs, std::size_t i) {
  for (auto const& other : runs.first(i))
    if (other.has_equal_work(runs[i]) && other.shards == runs[i].shards) return other;
  return runs[0];
}

LOCKSTEP_INLINE void ComparedRun::take_metric(json::Value const& final) {
  std::string_view const prefix = "eval_";
  bool found = false;
  for (auto const& [key, value] : final.object()) {
    std::string_view const full = key;
    if (!full.starts_with(prefix) || full == "eval_loss" || full == "eval_samples") continue;
    bool const accuracy = full == "eval_accuracy";
    if (!accuracy && found) continue;
    metric = full.substr(prefix.size());
    metric_value = number(value);
    found = true;
    if (accuracy) return;
  }
}

LOCKSTEP_INLINE bool ComparedRun::is_ignored(std::string_view setting) {
  if (ignored_settings.find(" " + std::string(setting) + " ") != std::string_view::npos) return true;
  FitOptions fit;
  data::DataLoaderOptions loader;
  launch::Options launch;
  parallel::DistributedOptions distributed;
  for (auto const& list : {describe(fit), describe(loader), describe(launch), describe_distributed(distributed)})
    for (auto const& option : list) {
      auto const flag = option.flag.names.substr(0, option.flag.names.find(','));
      if (!flag.empty() && flag.substr(2) == setting) return option.flag.compared == Compared::no;
    }
  return false;
}

LOCKSTEP_INLINE std::map<std::string, std::string> ComparedRun::settings_of(json::Value const& run) {
  std::map<std::string, std::string> all;
  auto const* const settings = run.find("settings");
  if (!settings) return all;
  for (auto const& [name, value] : settings->object())
    if (!is_ignored(name)) all[std::string(name)] = json::Writer().value(value).text();
  return all;
}

}}}  // namespace lockstep::scaling
