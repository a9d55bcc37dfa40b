// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <utility>

#include <lockstep/scaling/speed_up.hpp>
#include <lockstep/scaling/study/configuration.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

LOCKSTEP_INLINE Configuration Configuration::of(std::vector<StudyRun> runs) {
  Configuration out;
  auto const& first = runs.at(0);
  out.parallel = first.run.parallel;
  out.engine = first.engine;
  out.profile = first.run.profile;
  out.devices = out.profile.shards;
  out.threads = out.profile.threads;
  // The values of each run; the mean of those that are known.
  auto const over_runs = [&](auto const& value) {
    std::vector<double> values;
    for (auto const& run : runs) values.push_back(value(run));
    return Statistic::of(values);
  };
  out.samples_per_second = over_runs([](auto const& run) { return run.run.profile.samples_per_second; });
  out.epoch_seconds = over_runs([](auto const& run) { return Statistic::of(run.epoch_seconds).mean; });
  if (runs.size() == 1) out.epoch_seconds = Statistic::of(first.epoch_seconds);
  out.training_seconds = over_runs([](auto const& run) { return run.run.training_seconds; });
  out.metric = over_runs([](auto const& run) { return run.run.metric_value; });
  out.loss = over_runs([](auto const& run) { return run.run.loss; });
  auto const bytes = [](StudyRun const& run, std::size_t from, std::size_t to) {
    auto const& all = run.run.device_bytes;
    auto const none = std::numeric_limits<double>::quiet_NaN();
    to = std::min(to, all.size());
    return from >= to ? none
                      : *std::max_element(all.begin() + static_cast<std::ptrdiff_t>(from),
                                          all.begin() + static_cast<std::ptrdiff_t>(to));
  };
  out.first_device_bytes = over_runs([&](auto const& run) { return bytes(run, 0, 1); }).mean;
  out.other_devices_bytes = over_runs([&](auto const& run) { return bytes(run, 1, run.run.device_bytes.size()); }).mean;
  for (auto const member : {&StepProfile::samples_per_step, &StepProfile::samples_per_second,
                            &StepProfile::data_wait_ms, &StepProfile::forward_ms, &StepProfile::backward_ms,
                            &StepProfile::communication_ms, &StepProfile::optimizer_ms, &StepProfile::pass_ms})
    out.profile.*member = over_runs([&](auto const& run) { return run.run.profile.*member; }).mean;
  out.runs = std::move(runs);
  return out;
}

LOCKSTEP_INLINE Configuration Configuration::predicted_from(std::string parallel, Prediction const& prediction,
                                                            double samples, double samples_per_epoch) {
  Configuration out;
  out.parallel = std::move(parallel);
  out.devices = prediction.ranks;
  out.predicted = true;
  out.profile.shards = prediction.ranks;
  out.profile.samples_per_step = samples;
  out.profile.effective_batch_size = static_cast<Index>(samples);
  out.profile.samples_per_second = prediction.samples_per_second;
  out.profile.pass_ms = 1e3 * prediction.pass_seconds;
  out.profile.communication_ms = 1e3 * (prediction.exposed_seconds + prediction.slowest_seconds);
  out.profile.optimizer_ms = 1e3 * prediction.optimizer_seconds;
  out.profile.data_wait_ms = 1e3 * prediction.data_seconds;
  out.samples_per_second = {prediction.samples_per_second, 0, 0};
  if (samples_per_epoch > 0 && prediction.samples_per_second > 0)
    out.epoch_seconds = {samples_per_epoch / prediction.samples_per_second, 0, 0};
  return out;
}

LOCKSTEP_INLINE void Configuration::compare_with(StepProfile const& baseline, Statistic const& baseline_rate) {
  if (!has_speed() || !(baseline.samples_per_second > 0)) return;
  SpeedUp const measured(baseline, profile);
  auto const factor = measured.factor();
  auto const relative = std::hypot(samples_per_second.relative(), baseline_rate.relative());
  bool const is_baseline = devices == baseline.shards && parallel == "single";
  speed_up = {factor, factor * relative, samples_per_second.count};
  if (is_baseline) speed_up = {factor, 0, 1};  // by definition
  efficiency = speed_up.times(factor > 0 ? measured.efficiency() / factor : 0);
}

LOCKSTEP_INLINE std::string Configuration::label() const {
  return devices == 1 && parallel == "single" ? parallel : parallel + " " + std::to_string(devices);
}

LOCKSTEP_INLINE double Configuration::samples_per_epoch() const noexcept {
  return epoch_seconds.is_known() && has_speed() ? epoch_seconds.mean * samples_per_second.mean : 0;
}

}}}  // namespace lockstep::scaling
