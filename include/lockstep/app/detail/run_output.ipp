// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/app/detail/run_output.hpp>
#include <lockstep/core/shortest.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

LOCKSTEP_INLINE void RunOutput::note(std::string const& what) const {
  if (!is_main_rank()) return;
  std::printf("note: %s\n", what.c_str());
  std::fflush(stdout);
}

LOCKSTEP_INLINE void RunOutput::announce(Beginning const& run) const {
  Index const batch = run.batch_size * options_.shards() / options_.all_devices();
  auto const* const most = batch == options_.batch_size ? "" : "up to ";  // batches by tokens
  std::printf(
      "%s: %s, %d rank%s x %d device%s x %d thread%s, engine %s, batch %s%td per rank or device, effective batch "
      "%s%td, %td parameters\n",
      options_.program.c_str(), name(options_.parallel), options_.ranks, plural(options_.ranks), options_.devices,
      plural(options_.devices), options_.threads, plural(options_.threads), run.engine, most, batch, most,
      batch * options_.all_devices() * options_.grad_accum_steps, run.parameters);
  if (options_.reproducible > 0)
    std::printf(
        "reproducible: every micro-step has %d shards of %td, and bits do not depend on the number of ranks or "
        "devices\n",
        options_.reproducible, run.batch_size);
  for (auto const& warning : options_.warnings) note(warning);
  if (auto const slow = note_on_slow_start(Clock::seconds() - began_); !slow.empty()) note(slow);
  if (!options_.evaluate) note_warmup(run);
  std::fflush(stdout);
}

LOCKSTEP_INLINE void RunOutput::print_dry_run(train::RunRecord const& record, Index samples, Index epoch_steps,
                                              Index steps) const {
  std::printf("dry run: %lld samples, %lld steps an epoch, %lld in all", static_cast<long long>(samples),
              static_cast<long long>(epoch_steps), static_cast<long long>(steps));
  if (record.steps > 0) std::printf(", of which %lld are done", static_cast<long long>(record.steps));
  if (auto const& peak = record.session.peak_bytes_per_device; !peak.empty())
    std::printf("; %.1f MB on a device for parameters, gradients, optimizer and the first batch's activations",
                static_cast<double>(*std::max_element(peak.begin(), peak.end())) / 1e6);
  std::printf("\nnothing was trained, and nothing written\n");
  std::fflush(stdout);
}

LOCKSTEP_INLINE void RunOutput::print_end(train::RunRecord const& record) const {
  if (is_main_rank() && record.steps > 0 && record.steps == record.resumed() && !record.stopped)
    std::printf(record.was_complete ? "the run was complete at step %lld\n"
                                    : "the run had made its last step, %lld, before; the missing evaluation was made\n",
                static_cast<long long>(record.steps));
  if (is_main_rank() && !record.was_complete && options_.backend == Backend::cuda) print_startup(record);
  if (auto const other = note_on_attention(record.gpu); !record.was_complete && !other.empty()) note(other);
  if (is_main_rank() && record.loss_scale.skipped > 0)
    std::printf("note: %lld step%s skipped because gradients overflowed float16; the loss scale ends at %g\n",
                static_cast<long long>(record.loss_scale.skipped), record.loss_scale.skipped == 1 ? " was" : "s were",
                static_cast<double>(record.loss_scale.scale));
  if (record.stopped && saves()) {
    std::printf("saved as %s/step_%lld.safetensors; --resume auto resumes the run\n", file("checkpoints").c_str(),
                static_cast<long long>(record.steps));
    std::fflush(stdout);
  }
}

LOCKSTEP_INLINE void RunOutput::print_layer_times(train::Trace const& trace, nn::ParameterLayout const& layout) const {
  if (!is_main_rank()) return;
  auto const times = train::layer_times(trace, layout);
  train::write_layer_times(file("layers.csv"), times);
  std::printf("rank 0's steps %lld to %lld, on average (all layers: layers.csv; when: trace.json):\n%s",
              static_cast<long long>(trace.first_step()),
              static_cast<long long>(trace.first_step() + trace.steps() - 1), train::layer_table(times).c_str());
  if (trace.left_out() > 0) note(std::to_string(trace.left_out()) + " marks did not fit into the trace");
  std::fflush(stdout);
}

LOCKSTEP_INLINE void RunOutput::save(train::RunRecord const& record, nn::ParameterLayout const& layout,
                                     std::span<float const> values) const {
  auto labels = this->labels(record);
  labels.parameters_sha256 = train::parameters_sha256(layout, values);
  train::write_run_json(file("run.json"), record, labels);
}

LOCKSTEP_INLINE void RunOutput::print_diagnosis(Examination const& found, parallel::CollectiveCost const& all_reduce,
                                                nn::ParameterLayout const& layout) const {
  auto const& record = found.complete_steps;
  auto const labels = this->labels(record);
  auto const here = world_.size > 1 ? world_.local_size : 1;
  scaling::Diagnosis const diagnosis{
      .profile = scaling::profile_of(record),
      .loader_samples_per_second = found.loader_samples_per_second * record.world_size,
      .replayed_samples_per_second = found.replayed.samples_per_second(),
      .num_workers = options_.num_workers,
      .shards_here = here * record.devices,
      .ranks_here = here,
      .cores = options_.cores,
      .on_host = options_.backend == Backend::host,
      .can_use_bfloat16 =
          precision_ == Precision::fp32 && (options_.backend == Backend::cuda || multiplies_bfloat16_tiles()),
      .can_use_onednn = can_use_onednn(layout),
      .all_reduce = all_reduce};
  auto const run = train::run_json(record, labels);
  auto workload = scaling::SavedRun(run, "doctor").workload();
  if (found.loader_samples_per_second > 0)
    workload.load_seconds = workload.samples * record.devices / found.loader_samples_per_second;
  scaling::ScalingReport const report(workload, fabric(all_reduce, record.world_size),
                                      scaling::ScalingReport::powers_of_two());
  std::printf("%s\n%s\n\n%s", diagnosis.text().c_str(), labels.summary.c_str(), report.text().c_str());
  if (!saves()) return;
  train::AtomicFile out(file("doctor.json"));
  out.write(diagnosis.json(run));
  out.commit();
}

LOCKSTEP_INLINE scaling::Fabric RunOutput::fabric(parallel::CollectiveCost const& all_reduce, int ranks) const {
  bool const on_gpus = options_.backend == Backend::cuda;
  bool const asked = options_.link != scaling::Link::automatic || options_.beta_gb_s;
  if (on_gpus && !asked && ranks > 1 && options_.engine == launch::Engine::nccl && all_reduce.seconds_per_byte > 0)
    return scaling::Fabric::measured(all_reduce, ranks);
  return scaling::Fabric::of(options_.link, on_gpus, options_.alpha_us, options_.beta_gb_s);
}

LOCKSTEP_INLINE train::RunLabels RunOutput::labels(train::RunRecord const& record) const {
  return run_labels(options_, name(precision_.value_or(Precision::fp32)), record);
}

LOCKSTEP_INLINE void RunOutput::print_startup(train::RunRecord const& record) {
  auto const startup = record.startup();
  if (startup.steps + startup.shapes == 0 || startup.seconds < 0.05 * record.training_seconds) return;
  std::string where;
  if (startup.shapes > 0) where = " for " + std::to_string(startup.shapes) + " shapes of batches before the first step";
  if (startup.steps > 0)
    where += (where.empty() ? " in " : ", and in ") + std::to_string(startup.steps) + " of the first steps";
  std::printf("start-up: %.2f s of memory, plans and recordings%s; without it %.0f samples/s\n", startup.seconds,
              where.c_str(), record.samples_per_second_after_startup());
  std::fflush(stdout);
}

LOCKSTEP_INLINE void RunOutput::note_warmup(Beginning const& run) const {
  if (run.warmup > run.steps)
    note("--warmup-" + (options_.warmup_steps > 0 ? "steps" : "epochs " + shortest(options_.warmup_epochs)) +
         " would be " + std::to_string(run.warmup) + " steps, but the run has " + std::to_string(run.steps) +
         ": the learning rate rises until the last step, and never falls");
  if (options_.warmup_epochs > 0 && run.warmup == 0)
    note("--warmup-epochs " + shortest(options_.warmup_epochs) + " is less than half a step: there is no warm-up");
}

LOCKSTEP_INLINE void RunOutput::add_final(std::vector<std::pair<std::string, double>> const& metrics) const {
  if (metrics.empty()) return;
  auto const run = json::parse(read_text_file(file("run.json"), json::max_file_bytes), file("run.json"));
  auto members = run.object();
  for (auto& [name, value] : members) {
    if (name != "final") continue;
    auto final = value.object();
    for (auto const& [metric, number] : metrics) {
      auto const known = std::find_if(final.begin(), final.end(),
                                      [&wanted = metric](auto const& member) { return member.first == wanted; });
      auto const written = std::isfinite(number) ? json::Value(number) : json::Value(nullptr);
      known == final.end() ? void(final.emplace_back(metric, written)) : void(known->second = written);
    }
    value = json::Value(std::move(final));
  }
  json::Value const changed(std::move(members));
  if (changed == run) return;
  json::Writer text(json::Layout::indented);
  train::AtomicFile out(file("run.json"));
  out.write(text.value(changed).text());
  out.commit();
}

}}}  // namespace lockstep::app::detail
