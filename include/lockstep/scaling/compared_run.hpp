// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/core/json_writer.hpp>
#include <lockstep/scaling/detail/rounded.hpp>
#include <lockstep/scaling/saved_run.hpp>
#include <lockstep/scaling/step_profile.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

/// Whether two runs learned the same parameters.
enum class Agreement {
  equal,           ///< bit-identical parameters
  rounding,        ///< evaluation losses that differ by no more than rounding explains
  other_settings,  ///< a setting that decides what is learned differs: no agreement expected
  other_work,      ///< the number of steps or the effective batch differs: no agreement expected
  none,            ///< the runs should agree, and do not
};

/// A saved run as a row of a comparison with others.
struct ComparedRun {
  std::string name;  ///< name of its directory
  std::string parallel;
  Index ranks = 1, devices = 1, steps = 0;
  Index shards = 1;  ///< shards of each micro-step; runs with equal shards are bit-identical
  StepProfile profile;
  double training_seconds = 0;         ///< seconds of the steps, without evaluations and start-up
  double loss = 0;                     ///< loss of the last evaluation
  std::string metric = "accuracy";     ///< first metric of the evaluation, accuracy if it has that
  double metric_value = std::nan("");  ///< nan if the evaluation has no metric
  std::string parameters_sha256;
  std::vector<double> device_bytes;             ///< peak memory of each device, in order
  std::map<std::string, std::string> settings;  ///< settings that decide what is learned, by name

  /// Reads a run from its --save-dir.
  /// @throws DataError if it is no finished run
  [[nodiscard]] static ComparedRun read(std::string const& directory) {
    SavedRun const saved(directory);
    auto const profile = saved.profile();
    return saved.read([&](json::Value const& json) {
      auto const& final = json.at("final");
      auto const* const reproducible = json.find("reproducible");
      ComparedRun run{.name = saved.name(),
                      .parallel = json.at("parallel").string(),
                      .ranks = json.at("world_size").integer(),
                      .devices = json.at("devices").integer(),
                      .steps = json.at("steps").integer(),
                      .shards = reproducible ? reproducible->integer() : profile.shards,
                      .profile = profile,
                      .loss = number(final.at("eval_loss")),
                      .parameters_sha256 = json.at("parameters_sha256").string(),
                      .device_bytes = {},
                      .settings = settings_of(json)};
      if (auto const* const samples = json.find("samples"); samples && profile.samples_per_second > 0)
        run.training_seconds = samples->number() / profile.samples_per_second;
      if (auto const* const peaks = json.find("peak_bytes_per_device"))
        for (auto const& peak : peaks->array()) run.device_bytes.push_back(peak.number());
      run.take_metric(final);
      return run;
    });
  }

  /// Returns whether both runs took equally many steps with batches of equal size.
  [[nodiscard]] bool same_work(ComparedRun const& other) const noexcept {
    return profile.effective_batch_size == other.profile.effective_batch_size && steps == other.steps;
  }

  /// Returns this run's settings that differ, with the values of `other` in parentheses: "lr 0.002 (0.001), dropout 0.2
  /// (not given)".
  [[nodiscard]] std::string differences(ComparedRun const& other) const {
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

  /// Compares the learned parameters, or the evaluation losses if rounding may differ.
  [[nodiscard]] Agreement agreement(ComparedRun const& other) const {
    if (!differences(other).empty()) return Agreement::other_settings;
    if (!same_work(other)) return Agreement::other_work;
    if (parameters_sha256 == other.parameters_sha256) return Agreement::equal;
    bool const near = shards != other.shards && std::abs(loss - other.loss) <= loss_bound;
    return near ? Agreement::rounding : Agreement::none;
  }
  /// Returns the agreement as a sentence.
  [[nodiscard]] std::string says_agreement(ComparedRun const& other) const {
    auto const pair = name + " and " + other.name;
    auto const agrees = agreement(other);
    if (agrees == Agreement::other_settings)
      return name + " need not agree with " + other.name + ": it has " + differences(other) + ".";
    if (agrees == Agreement::other_work) return pair + " took other steps or batches, so they need not agree.";
    if (agrees == Agreement::equal) return pair + " agree: their parameters are equal bit for bit.";
    return pair + (agrees == Agreement::rounding ? " agree" : " DISAGREE") + ": their evaluation losses are " +
           detail::rounded(std::abs(loss - other.loss), 4) + " apart (" +
           (shards == other.shards ? "their parameters should be equal bit for bit"
                                   : "at most " + detail::rounded(loss_bound, 2) + " is due to rounding") +
           ").";
  }

  /// Returns the reference for run `i`: an earlier run with equal work and equally many shards, else the first run.
  [[nodiscard]] static ComparedRun const& nearest_before(std::span<ComparedRun const> runs, std::size_t i) {
    for (auto const& other : runs.first(i))
      if (other.same_work(runs[i]) && other.shards == runs[i].shards) return other;
    return runs[0];
  }

 private:
  // Runs of equal global batches differ only by rounding. AdamW divides by the root of small second moments. Rounding
  // thus changes parameters by whole learning rates, in both directions, and the evaluation loss by much less. There is
  // no derived bound. This is the largest difference that counts as agreement.
  static constexpr double loss_bound = 0.02;

  // Flags for the place and mode of computation, and for files. The batch size shows in the steps.
  static constexpr std::string_view no_matter =
      " backend batch-size bucket-cap-mb check-replicas-every checkpoint-every config devices engine global-batch-size "
      "host-timeout join-timeout keep-checkpoints local-rank master-addr master-port max-restarts nproc num-workers "
      "parallel predictions prefetch prefetch-factor reproducible resume save-dir shard-optimizer stall-timeout "
      "threads timed-products trace ";

  // An evaluation that is not a number is saved as null.
  static double number(json::Value const& value) { return value.is_null() ? std::nan("") : value.number(); }

  void take_metric(json::Value const& final) {
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

  static std::map<std::string, std::string> settings_of(json::Value const& run) {
    std::map<std::string, std::string> all;
    auto const* const settings = run.find("settings");
    if (!settings) return all;
    for (auto const& [name, value] : settings->object())
      if (no_matter.find(" " + std::string(name) + " ") == std::string_view::npos)
        all[std::string(name)] = json::Writer().value(value).text();
    return all;
  }
};

}}}  // namespace lockstep::scaling
