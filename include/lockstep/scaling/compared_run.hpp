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

namespace lockstep::inline LOCKSTEP_ABI::scaling {

/// Whether two runs learned the same parameters.
enum class Agreement {
  equal,           ///< bit-identical parameters
  rounding,        ///< evaluation losses that differ by no more than rounding explains
  other_settings,  ///< a setting that decides what is learned differs, so that nothing is to be expected
  other_work,      ///< the number of steps or the effective batch differs, so that nothing is to be expected
  none,            ///< the runs should agree, and do not
};

/// A saved run as a row of a comparison with others.
struct ComparedRun {
  std::string name;  ///< of its directory
  std::string parallel;
  Index ranks = 1, devices = 1, steps = 0;
  Index shards = 1;  ///< in which each micro-step was summed: runs with equal shards have equal bits
  StepProfile profile;
  double training_seconds = 0;         ///< of the steps, without evaluations and start-up
  double loss = 0;                     ///< of the last evaluation
  std::string metric = "accuracy";     ///< the first metric of the evaluation, accuracy if it has that
  double metric_value = std::nan("");  ///< nan if the evaluation has no metric
  std::string parameters_sha256;
  std::vector<double> device_bytes;             ///< peak memory of each device, in order
  std::map<std::string, std::string> settings;  ///< those that decide what is learned, by name

  /// Reads what --save-dir received.
  /// @throws DataError when it is no finished run
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

  /// Whether both took the same number of steps with batches of the same size.
  [[nodiscard]] bool same_work(ComparedRun const& other) const noexcept {
    return profile.effective_batch_size == other.profile.effective_batch_size && steps == other.steps;
  }

  /// "lr 0.002 (0.001), dropout 0.2 (not given)": settings of this run that differ, and in brackets those of `other`.
  [[nodiscard]] std::string differences(ComparedRun const& other) const {
    std::string all;
    if (settings.empty() || other.settings.empty()) return all;  // written by a version without them
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

  [[nodiscard]] Agreement agreement(ComparedRun const& other) const {
    if (!differences(other).empty()) return Agreement::other_settings;
    if (!same_work(other)) return Agreement::other_work;
    if (parameters_sha256 == other.parameters_sha256) return Agreement::equal;
    bool const near = shards != other.shards && std::abs(loss - other.loss) <= loss_bound;
    return near ? Agreement::rounding : Agreement::none;
  }
  /// `agreement` in a sentence.
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

  /// The run before number `i` that it should agree with best: one of the same work and as many shards, else the first.
  [[nodiscard]] static ComparedRun const& nearest_before(std::span<ComparedRun const> runs, std::size_t i) {
    for (auto const& other : runs.first(i))
      if (other.same_work(runs[i]) && other.shards == runs[i].shards) return other;
    return runs[0];
  }

 private:
  // Runs of the same global batches differ by rounding alone. AdamW divides by the root of small second moments, so
  // that rounding moves parameters by whole learning rates, back and forth, and the evaluation loss by much less. How
  // much less cannot be derived; this is the largest distance that we call agreement.
  static constexpr double loss_bound = 0.02;

  // Flags for where and how a run computes, and for its files; the size of its batches shows in its steps.
  static constexpr std::string_view no_matter =
      " backend batch-size bucket-cap-mb check-replicas-every checkpoint-every config devices engine global-batch-size "
      "host-timeout join-timeout keep-checkpoints local-rank master-addr master-port max-restarts nproc num-workers "
      "parallel predictions prefetch prefetch-factor reproducible resume save-dir shard-optimizer stall-timeout "
      "threads timed-products trace ";

  // An evaluation that was no number is null.
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

}  // namespace lockstep::inline LOCKSTEP_ABI::scaling
