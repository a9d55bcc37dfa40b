// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/train/logs/run_json.hpp>

#include "temporary_folder.hpp"

namespace lockstep_test {

/// A finished run of 3 epochs, 8 steps each, as a trainer saves it.
struct SavedExample {
  std::string parallel = "single";
  int devices = 1;
  int batch = 32;       ///< per device
  double speed = 1000;  ///< samples per second
  int global_batch = 0;
  std::string data = {};
  int seed = 1;
  double accuracy = 0.9;
  double communication_ms = 0;
  std::string sha = "aaaa";
  std::string lr = "0.001";
  int parameters = 1000000;
  int evaluated = 5000;  ///< samples of the evaluation

  [[nodiscard]] int effective() const { return global_batch > 0 ? global_batch : batch * devices; }
  [[nodiscard]] std::string json() const {
    lockstep::train::RunRecord r;
    r.parallel = parallel;
    r.engine = parallel == "ddp" ? "process" : "self";
    (parallel == "dp" ? r.devices : r.world_size) = devices;
    r.batch_size = effective() / devices;
    r.effective_batch_size = effective();
    r.parameters = parameters;
    r.steps = 24;
    r.samples = r.steps * effective();
    r.training_seconds = static_cast<double>(r.samples) / speed;
    auto const step = r.training_seconds / 24;
    r.step_seconds.assign(24, step);
    r.epoch_seconds = {8 * step * 1.2, 8 * step * 0.9, 8 * step * 0.9};  // the first epoch is slower
    auto const busy = r.training_seconds - 24e-3 * communication_ms;
    r.phases = {.forward = 0.3 * busy,
                .backward = 0.6 * busy,
                .communication = 24e-3 * communication_ms,
                .optimizer = 0.1 * busy};
    for (int i = 0; i < devices; ++i)
      r.session.peak_bytes_per_device.push_back(parallel == "dp" && i > 0 ? 8000000u : 12000000u);
    r.session.buckets = {{2000000, 0.6 * step}, {2000000, 0.9 * step}};
    r.evaluations = {
        {.step = 24, .epoch = 2, .samples = evaluated, .loss = 1 - accuracy, .metrics = {{"accuracy", accuracy}}}};
    std::vector<std::pair<std::string, std::string>> settings{
        {"lr", lr}, {"seed", std::to_string(seed)}, {"lr-scaling", "none"}};
    if (!data.empty()) settings.emplace_back("data", data);
    if (global_batch > 0) settings.emplace_back("global-batch-size", std::to_string(global_batch));
    return lockstep::train::run_json(
        r, {.example = "toy", .parameters_sha256 = sha, .summary = "-", .settings = settings});
  }
  void save(std::string const& directory) const {
    std::filesystem::create_directories(directory);
    write_file(directory + "/run.json", json());
  }
};

}  // namespace lockstep_test
