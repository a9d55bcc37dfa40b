// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/shortest.hpp>
#include <lockstep/scaling/saved_run.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

LOCKSTEP_INLINE SavedRun::SavedRun(std::string const& directory) {
  namespace fs = std::filesystem;
  auto path = fs::path(directory);
  std::error_code error;
  bool const is_diagnosis = !fs::exists(path / "run.json", error) && fs::exists(path / "doctor.json", error);
  file_ = (path / (is_diagnosis ? "doctor.json" : "run.json")).string();
  if (!fs::exists(file_, error))
    throw DataError(directory +
                    (fs::is_directory(path, error) ? ": holds no run.json"
                     : fs::exists(path, error)     ? ": is a file, not the directory of a run"
                                                   : ": there is no such directory") +
                    "; give the --save-dir of a finished run");
  json_ = json::parse(read_text_file(file_, json::max_file_bytes), file_);
  if (is_diagnosis) json_ = with_file_name([&] { return json_.at("run"); });
  if (!path.has_filename()) path = path.parent_path();
  name_ = path.filename().string();
}

LOCKSTEP_INLINE StepProfile SavedRun::profile() const {
  return read([](json::Value const& run) {
    auto const& phases = run.at("phases_ms");
    StepProfile out{.shards = positive(run, "world_size") * positive(run, "devices"),
                    .threads = positive(run, "threads"),
                    .effective_batch_size = positive(run, "effective_batch_size"),
                    .samples_per_second = run.at("samples_per_second").number(),
                    .data_wait_ms = phases.at("data_wait").number(),
                    .communication_ms = phases.at("communication_exposed").number(),
                    .optimizer_ms = phases.at("optimizer").number()};
    if (auto const* const samples = run.find("samples"), * const steps = run.find("steps"); samples && steps)
      out.samples_per_step = steps->number() > 0 ? samples->number() / steps->number() : 0;
    if (auto const* const pass = phases.find("forward_and_backward")) {  // on a GPU
      out.pass_ms = pass->number();
    } else {
      out.forward_ms = phases.at("forward").number();
      out.backward_ms = phases.at("backward").number();
    }
    if (auto const* const gpu = run.find("gpu"))
      out.gpu = {gpu->at("replayed").number(), gpu->at("queue_ms").number(),   gpu->at("busy_ms").number(),
                 gpu->at("kernels").number(),  gpu->at("product_ms").number(), gpu->at("memory_ms").number()};
    add_ranks(out, run);
    return out;
  });
}

LOCKSTEP_INLINE void SavedRun::add_ranks(StepProfile& out, json::Value const& run) {
  auto const* const loads = run.find("rank_loads");
  if (!loads) return;
  auto const* const wire = run.find("gradient_wire");
  if (auto const* const fast = run.at("step_ms").find("p10")) out.fast_step_ms = fast->number();
  out.gradient_bytes = (wire ? bytes_of(*wire) : sizeof(float)) * bytes(run, "parameters");
  auto const* const ranks = run.find("ranks_ms");
  auto const& all = loads->array();
  if (ranks && ranks->array().size() != all.size()) return;
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto const& load = all[i];
    auto const number = [&](char const* key) { return load.at(key).number(); };
    if (!(number("cores") > 0)) return out.ranks.clear();
    RankStep step{.data_ms = out.data_wait_ms,
                  .compute_ms = out.forward_ms + out.backward_ms,
                  .communication_ms = out.communication_ms,
                  .optimizer_ms = out.optimizer_ms,
                  .processor_ms = number("compute_processor_ms"),
                  .deviation_ms = number("compute_deviation_ms"),
                  .queued_ms = number("queued_ms"),
                  .loader_ms = number("loader_ms"),
                  .throttled_ms = number("throttled_ms"),
                  .observed = number("loader_looks"),
                  .locked = number("loader_locked"),
                  .threads = number("threads"),
                  .cores = number("cores"),
                  .core_set = number("core_set")};
    if (ranks) {
      auto const& phases = ranks->at(i);
      step.data_ms = phases.at("data_wait").number();
      step.compute_ms = phases.at("compute").number();
      step.communication_ms = phases.at("communication_exposed").number();
      step.optimizer_ms = phases.at("optimizer").number();
    }
    out.ranks.push_back(step);
  }
}

LOCKSTEP_INLINE Workload SavedRun::workload() const {
  auto const profile = this->profile();
  return read([&](json::Value const& run) {
    auto const pass_ms = profile.forward_ms + profile.backward_ms + profile.pass_ms;
    auto const own_ms = pass_ms + profile.optimizer_ms;
    auto const waited_ms = profile.data_wait_ms + profile.communication_ms;
    auto const step_ms = std::max(profile.step_ms(), own_ms + waited_ms);
    if (!(pass_ms > 0)) throw DataError("no step was timed, so that other runs cannot be predicted");
    Workload out;
    out.ranks = profile.shards;
    out.samples = profile.samples() / static_cast<double>(profile.shards);
    out.pass_seconds = pass_ms / 1e3;
    out.optimizer_seconds = profile.optimizer_ms / 1e3;
    if (run.find("shard_optimizer"))  // predicted runs do not shard: each rank updates all parameters
      out.optimizer_seconds *= static_cast<double>(profile.shards);
    out.other_seconds = (step_ms - own_ms - waited_ms) / 1e3;
    if (profile.data_wait_ms > step_ms / 100)                         // else its reserve is unknown
      out.load_seconds = (step_ms - profile.communication_ms) / 1e3;  // lower bound: ranks that wait also load
    auto const& quantiles = run.at("step_ms");
    constexpr double deviations = 1.645;  // from the median to the 95th percentile of a normal distribution
    out.spread_seconds = (quantiles.at("p95").number() - quantiles.at("p50").number()) / 1e3 / deviations;
    if (auto const* const wire = run.find("gradient_wire")) out.gradient_bytes = bytes_of(*wire);
    add_gradients(out, run, profile.pass_ms > 0);
    return out;
  });
}

LOCKSTEP_INLINE Index SavedRun::positive(json::Value const& run, char const* name) {
  auto const value = run.at(name).integer();
  if (value < 1 || value > 1 << 30)
    throw DataError("\"" + std::string(name) + "\" is " + std::to_string(value) + "; must be from 1 to 2^30");
  return value;
}

LOCKSTEP_INLINE double SavedRun::bytes(json::Value const& bucket, char const* name) {
  auto const value = bucket.at(name).number();
  if (!(value >= 0 && value < 1e15))
    throw DataError("\"" + std::string(name) + "\" is " + shortest(value) + "; must be from 0 to 10^15");
  return value;
}

LOCKSTEP_INLINE double SavedRun::bytes_of(json::Value const& wire) {
  for (auto const format :
       {parallel::WireFormat::float32, parallel::WireFormat::bfloat16, parallel::WireFormat::float16})
    if (wire.string() == parallel::name(format)) return static_cast<double>(size_of(parallel::element_type(format)));
  throw DataError("\"gradient_wire\" is \"" + wire.string() + "\"; must be \"fp32\", \"bf16\" or \"fp16\"");
}

LOCKSTEP_INLINE void SavedRun::add_gradients(Workload& out, json::Value const& run, bool queued) {
  auto const& buckets = run.at("buckets").array();
  double last_ms = 0;
  for (auto const& bucket : buckets)
    if (out.ranks == 1 || !bucket.find("table_bytes"))  // with several ranks, tables wait for the other sums
      last_ms = std::max(last_ms, bucket.at("ready_ms").number());
  if (queued || last_ms == 0) {
    constexpr int parts = 32;
    auto const all = out.gradient_bytes * bytes(run, "parameters");
    for (int i = 1; i <= parts; ++i)
      out.gradients.push_back({all / parts, out.pass_seconds * (1 + 2.0 * i / parts) / 3, 0});
    return;
  }
  for (auto const& bucket : buckets) {
    GradientPart part{bytes(bucket, "bytes"), out.pass_seconds, 0};
    if (bucket.find("table_bytes"))
      part.table_bytes = bytes(bucket, "table_bytes");
    else
      part.ready_seconds *= bucket.at("ready_ms").number() / last_ms;
    out.gradients.push_back(part);
  }
}

}}}  // namespace lockstep::scaling
