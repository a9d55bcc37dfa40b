// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/scaling/diagnosis.hpp>
#include <lockstep/scaling/lost_time.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

LOCKSTEP_INLINE std::vector<detail::Remedy> Diagnosis::remedies() const {
  std::vector<detail::Remedy> out;
  auto const add = [&](double gain, std::string description) {
    if (gain >= 0.02) out.push_back({gain, std::move(description)});
  };
  auto const step_ms = profile.step_ms();
  if (step_ms <= 0) return out;
  if (auto const waited = profile.data_wait_ms / step_ms; waited >= 0.02)
    add(replay_gain(), data_remedy());
  else if (on_host)
    add(std::min(replay_gain(), loading()),
        "making batches takes cores from training: samples that are cheaper to make, or data::Cache");
  auto const each = std::max(1, cores / shards_here);
  auto const compute_ms = profile.forward_ms + profile.backward_ms + profile.pass_ms;
  if (on_host && threads() < cores) {  // upper bound: all cores share the passes
    auto const saved = compute_ms / step_ms * (1 - static_cast<double>(threads()) / cores);
    add(saved / (1 - saved), "at best: " + std::to_string(cores - threads()) + " of " + std::to_string(cores) +
                                 " cores have no training thread: more --nproc or --devices" +
                                 (each > profile.threads ? ", or --threads " + std::to_string(each) : ""));
  }
  auto const repeated = (profile.optimizer_ms + profile.communication_ms) / step_ms;
  add(1 / (1 - repeated / 2) - 1,
      "twice the --batch-size: " + std::string(profile.shards > 1 ? "optimizer and sums" : "the optimizer") +
          " would take " + detail::rounded(50 * repeated, 0) + " % less of the time for a sample");
  if (auto const lag = profile.slowest.lag_ms / step_ms; lag < 1)
    add(1 / (1 - lag) - 1, "the others wait for rank " + std::to_string(profile.slowest.rank) + ", whose " +
                               profile.slowest.phase + " takes longest: look for other work on its host");
  for (auto const& lost : find_lost_time(profile))
    if ((lost.cause == Cause::uneven_batches || lost.cause == Cause::processor_quota) && lost.ms < step_ms)
      add(1 / (1 - lost.ms / step_ms) - 1, lost.summary);
  auto const limit = on_host ? detail::DeviceLimit::unknown : detail::device_limit(profile);
  if (limit == detail::DeviceLimit::launches)
    if (auto const idle = detail::idle_ms(profile) / step_ms; idle < 1)
      add(1 / (1 - idle) - 1,
          std::string("at best, without waits of the GPU for the host: ") + detail::remedy_of(limit, profile));
  detail::sort(out);
  if (limit == detail::DeviceLimit::small_kernels) out.push_back({0, detail::remedy_of(limit, profile)});
  if ((limit == detail::DeviceLimit::memory || limit == detail::DeviceLimit::arithmetic) && can_use_bfloat16)
    out.push_back({0, detail::remedy_of(limit, profile)});
  if (on_host && can_use_onednn && compute_ms >= step_ms / 2)
    out.push_back({0, "lockstep::onednn linked to the program (Debian: libdnnl-dev): convolutions are oneDNN's then"});
  if (on_host && can_use_bfloat16 && compute_ms >= step_ms / 2)
    out.push_back({0, "--precision bf16: this processor multiplies it in tiles (AMX); wide linear maps gain most"});
  if (on_host && threads() > cores)
    out.push_back({0, std::to_string(threads()) + " training threads share " + std::to_string(cores) +
                          " cores: " + (each < profile.threads ? "--threads " + std::to_string(each) + ", or " : "") +
                          "fewer ranks or devices"});
  return out;
}

LOCKSTEP_INLINE std::string Diagnosis::text() const {
  auto const line = [](char const* what, std::string const& value) {
    char text[320];
    std::snprintf(text, sizeof text, "  %-28s %s\n", what, value.c_str());
    return std::string(text);
  };
  auto const rate = [](double value) { return detail::rounded(value, 1) + " samples/s"; };
  auto const ms = [](double value) { return detail::rounded(value, 1); };
  std::string out = "measured in short runs that change nothing:\n";
  out +=
      line("steps as they are", rate(profile.samples_per_second) + ", " + ms(profile.step_ms()) + " ms each: compute " +
                                    ms(profile.forward_ms + profile.backward_ms + profile.pass_ms) +
                                    ", communication not hidden " + ms(profile.communication_ms) + ", optimizer " +
                                    ms(profile.optimizer_ms) + ", waiting for data " + ms(profile.data_wait_ms));
  if (auto const& gpu = profile.gpu; gpu.kernels > 0)
    out += line("the GPU in a step",
                (gpu.busy_ms > 0 ? "forward and backward " + detail::rounded(gpu.busy_ms, 2) + " ms without waits, "
                                 : std::string()) +
                    detail::rounded(gpu.kernels, 0) + " kernels, queued in " + detail::rounded(gpu.queue_ms, 2) +
                    " ms, " + detail::rounded(100 * gpu.replayed, 0) + " % of passes as CUDA graphs");
  out += line("steps on batches made before", rate(replayed_samples_per_second));
  out +=
      line("the loader alone", rate(loader_samples_per_second) + " with --num-workers " + std::to_string(num_workers));
  if (all_reduce.latency_seconds + all_reduce.seconds_per_byte > 0)
    out += line("an all-reduce alone", detail::rounded(all_reduce.latency_seconds * 1e6, 1) + " us and " +
                                           detail::rounded(all_reduce.seconds_per_byte * 1e12, 1) + " us for a MB");
  out +=
      line("cores", std::to_string(cores) + "; threads that train on them " + std::to_string(on_host ? threads() : 0) +
                        ", that load " + std::to_string(num_workers * ranks_here));
  auto const better = remedies();
  if (better.empty()) return out + "nothing was found that would make it 2 % faster on these devices\n";
  return out + "changes that would help, best first:\n" + detail::lines(better);
}

LOCKSTEP_INLINE std::string Diagnosis::json(std::string const& run) const {
  json::Writer out(json::Layout::indented);
  out.begin_object().member("schema", 1);
  out.member("loader_samples_per_second", loader_samples_per_second);
  out.member("replayed_samples_per_second", replayed_samples_per_second);
  out.member("num_workers", num_workers).member("cores", cores);
  if (all_reduce.latency_seconds + all_reduce.seconds_per_byte > 0)
    out.key("all_reduce")
        .begin_object()
        .member("start_us", all_reduce.latency_seconds * 1e6)
        .member("us_per_mb", all_reduce.seconds_per_byte * 1e12)
        .end_object();
  out.key("remedies").begin_array();
  for (auto const& remedy : remedies()) {
    out.begin_object();
    if (remedy.gain > 0) out.member("gain", remedy.gain);
    out.member("says", remedy.description).end_object();
  }
  out.end_array().member("run", json::parse(run, "run.json")).end_object();
  return out.text();
}

LOCKSTEP_INLINE double Diagnosis::loading() const noexcept {
  auto const share = profile.samples_per_second / std::max(loader_samples_per_second, 1e-9);
  return share * num_workers * ranks_here / threads();
}

LOCKSTEP_INLINE double Diagnosis::replay_gain() const noexcept {
  return replayed_samples_per_second / profile.samples_per_second - 1;
}

LOCKSTEP_INLINE std::string Diagnosis::data_remedy() const {
  for (auto const& lost : find_lost_time(profile))
    if (lost.cause == Cause::lock_contention) return lost.summary;
  auto const replayed = replayed_samples_per_second, loader = loader_samples_per_second;
  auto const rates = "the loader gives " + detail::rounded(loader, 0) + " samples/s, the model takes " +
                     detail::rounded(replayed, 0) + ": ";
  if (num_workers == 0) return rates + "--num-workers 1 or more would load during training";
  if (loader >= 1.1 * replayed) return rates + "a larger --prefetch would outlast slow samples";
  std::string const cheaper = "samples that are cheaper to make, or data::Cache";
  if (!(loader > 0)) return rates + cheaper;
  auto const wanted = std::ceil(1.1 * num_workers * replayed / loader);  // may exceed the range of int
  auto const workers = "--num-workers " + detail::rounded(wanted, 0);
  if (on_host && wanted * ranks_here + threads() > cores)
    return rates + workers + " if more cores are available, all " + std::to_string(cores) + " are in use; otherwise " +
           cheaper;
  return rates + workers;
}

}}}  // namespace lockstep::scaling
