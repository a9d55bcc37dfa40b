// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <charconv>
#include <system_error>

#include <lockstep/core/shortest.hpp>
#include <lockstep/train/logs/run_json.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE void write_setting(json::Writer& out, std::string_view text) {
  auto const is = [&](auto& number) {
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size() && shortest(number) == text;
  };
  std::int64_t integer = 0;
  std::uint64_t natural = 0;
  double number = 0;
  if (text == "true" || text == "false")
    out.value(text == "true");
  else if (is(integer))
    out.value(integer);
  else if (is(natural))
    out.value(static_cast<double>(natural));  // a seed of 64 bits
  else if (is(number) && std::isfinite(number))
    out.value(number);
  else
    out.value(text);
}

LOCKSTEP_COLD_INLINE void write_phases(json::Writer& out, RunRecord const& record) {
  auto const member = [&](char const* name, double seconds) { out.member(name, record.ms_per_step(seconds)); };
  out.key("phases_ms").begin_object();
  member("data_wait", record.data_wait_seconds);
  if (record.phases.pass > 0) {
    member("forward_and_backward", record.phases.pass);
  } else {
    member("forward", record.phases.forward);
    member("backward", record.phases.backward);
  }
  member("communication_exposed", record.phases.communication);
  member("optimizer", record.phases.optimizer);
  out.end_object();
}

LOCKSTEP_COLD_INLINE void write_gpu(json::Writer& out, parallel::DeviceFacts const& facts,
                                    parallel::DeviceStep const& step) {
  out.key("gpu").begin_object().member("replayed", step.replayed).member("queue_ms", step.queue_ms);
  out.member("busy_ms", step.busy_ms).member("kernels", step.kernels).member("product_ms", step.product_ms);
  out.member("memory_ms", step.memory_ms);
  if (!facts.libraries.empty()) {
    out.member("name", facts.name).member("compute_capability", facts.compute_capability);
    out.key("libraries").begin_object();
    for (auto const& [library, version] : facts.libraries) out.member(library, version);
    out.end_object().member("matmul_precision", facts.matmul_precision);
    out.key("attention").begin_object().member("kernels", facts.attention_kernels);
    if (facts.attention_by_cudnn + facts.attention_not_by_cudnn > 0) {
      out.member("passes_by_cudnn", facts.attention_by_cudnn);
      out.member("passes_not_by_cudnn", facts.attention_not_by_cudnn);
    }
    if (!facts.attention_reason.empty()) out.member("reason", facts.attention_reason);
    out.end_object();
  }
  out.end_object();
}

LOCKSTEP_COLD_INLINE void write_ranks(json::Writer& out, RunRecord const& record) {
  out.key("ranks_ms").begin_array();
  for (auto const& rank : record.ranks) {
    out.begin_object().member("data_wait", record.ms_per_step(rank.data_wait));
    out.member("compute", record.ms_per_step(rank.compute));
    out.member("communication_exposed", record.ms_per_step(rank.communication));
    out.member("optimizer", record.ms_per_step(rank.optimizer)).end_object();
  }
  out.end_array();
}

LOCKSTEP_COLD_INLINE void write_loads(json::Writer& out, RunRecord const& record) {
  auto const steps = static_cast<double>(std::max<Index>(1, record.steps - record.resumed()));
  out.key("rank_loads").begin_array();
  for (auto const& load : record.loads) {
    out.begin_object().member("compute_processor_ms", 1e3 * load.compute_seconds / steps);
    out.member("compute_deviation_ms", 1e3 * load.deviation_seconds);
    out.member("queued_ms", 1e3 * load.queued_seconds / steps);
    out.member("loader_ms", 1e3 * load.loader_seconds / steps);
    out.member("throttled_ms", 1e3 * load.throttled_seconds / steps);
    out.member("loader_looks", load.observed).member("loader_locked", load.locked);
    out.member("threads", load.threads).member("cores", load.cores).member("core_set", load.core_set).end_object();
  }
  out.end_array();
}

LOCKSTEP_COLD_INLINE void write_buckets(json::Writer& out, RunRecord const& record) {
  auto const since = [&](double seconds) { return (seconds - record.pass_began) * 1e3; };
  out.key("buckets").begin_array();
  for (auto const& bucket : record.session.buckets) {
    out.begin_object().member("bytes", bucket.bytes).member("ready_ms", since(bucket.ready));
    if (bucket.start > 0) out.member("start_ms", since(bucket.start)).member("end_ms", since(bucket.end));
    if (bucket.table_bytes > 0) out.member("table_bytes", bucket.table_bytes);
    out.end_object();
  }
  out.end_array();
}

LOCKSTEP_COLD_INLINE void write_evaluation(json::Writer& out, EvaluationReport const& report) {
  out.key("eval_loss").value_or_null(report.loss);
  for (auto const& [name, value] : report.metrics) out.key("eval_" + name).value_or_null(value);
  out.member("eval_samples", report.samples);
}

LOCKSTEP_COLD_INLINE void write_final(json::Writer& out, RunRecord const& record) {
  out.key("final").begin_object().member("train_loss", record.train_loss);
  if (!record.evaluations.empty()) write_evaluation(out, record.evaluations.back());
  out.end_object();
  EvaluationReport const* best = nullptr;
  for (auto const& each : record.evaluations)
    if (each.best) best = &each;
  if (!best) return;
  out.key("best").begin_object().member("step", best->step).member("epoch", best->epoch);
  write_evaluation(out, *best);
  out.end_object();
}

}}}  // namespace lockstep::train::detail

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

LOCKSTEP_COLD_INLINE std::string run_json(RunRecord const& record, RunLabels const& labels) {
  json::Writer out(json::Layout::indented);
  out.begin_object().member("schema", 1).member("version", version).member("example", labels.example);
  if (!labels.command.empty()) out.member("command", labels.command);
  if (!labels.settings.empty()) out.key("settings").begin_object();
  for (auto const& [name, text] : labels.settings) {
    out.key(name);
    if (std::find(labels.strings.begin(), labels.strings.end(), name) == labels.strings.end())
      detail::write_setting(out, text);
    else
      out.value(text);
  }
  if (!labels.settings.empty()) out.end_object();
  out.member("parallel", record.parallel).member("backend", labels.backend).member("engine", record.engine);
  out.member("precision", labels.precision);
  out.member("world_size", record.world_size).member("devices", record.devices).member("threads", record.threads);
  if (record.reproducible > 0) out.member("reproducible", record.reproducible);
  parallel::DistributedOptions const initial;
  for (auto const& [name, text] :
       parallel::describe_distributed(record).changed(parallel::describe_distributed(initial)))
    detail::write_setting(out.key(name), text);
  out.member("batch_size", record.batch_size).member("effective_batch_size", record.effective_batch_size);
  out.member("parameters", record.parameters).member("resumed_at", record.resumed_at);
  out.member("steps", record.steps)
      .member("samples", record.samples)
      .member("samples_per_second", record.samples_per_second())
      .member("samples_per_second_after_startup", record.samples_per_second_after_startup());
  auto const startup = record.startup();
  out.key("startup").begin_object().member("seconds", startup.seconds).member("steps", startup.steps);
  if (startup.shapes > 0) out.member("shapes_ahead", startup.shapes).member("seconds_ahead", record.rehearsal_seconds);
  out.end_object();
  out.key("step_ms")
      .begin_object()
      .member("p10", record.step_quantile(0.1) * 1e3)
      .member("p50", record.step_quantile(0.5) * 1e3)
      .member("p95", record.step_quantile(0.95) * 1e3);
  out.end_object().member("epoch_seconds", record.epoch_seconds);
  detail::write_phases(out, record);
  if (auto const step = record.device_step(); step.kernels > 0) detail::write_gpu(out, record.gpu, step);
  if (record.ranks.size() > 1) detail::write_ranks(out, record);
  if (!record.loads.empty() && record.loads[0].cores > 0) detail::write_loads(out, record);
  detail::write_buckets(out, record);
  out.member("peak_bytes_per_device", record.session.peak_bytes_per_device);
  out.member("unused_parameters", record.session.unused_parameters);
  detail::write_final(out, record);
  if (auto const scale = record.loss_scale)
    out.member("loss_scale", static_cast<double>(scale.scale)).member("skipped_steps", scale.skipped);
  out.member("parameters_sha256", labels.parameters_sha256);
  out.key("verdict").begin_object().member("bound", labels.bound).member("says", labels.summary);
  if (!labels.cause.empty()) out.member("cause", labels.cause);
  out.end_object();
  out.end_object();
  return out.text();
}

LOCKSTEP_COLD_INLINE void write_run_json(std::string const& path, RunRecord const& record, RunLabels const& labels) {
  AtomicFile file(path);
  file.write(run_json(record, labels));
  file.commit();
}

}}}  // namespace lockstep::train
