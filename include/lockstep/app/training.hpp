// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/app/backend.hpp>
#include <lockstep/app/detail/additions.hpp>
#include <lockstep/app/detail/evaluate_alone.hpp>
#include <lockstep/app/detail/mpi.hpp>
#include <lockstep/app/detail/nccl.hpp>
#include <lockstep/app/detail/not_over.hpp>
#include <lockstep/app/detail/optimizer_settings.hpp>
#include <lockstep/app/detail/parse_number.hpp>
#include <lockstep/app/detail/run_labels.hpp>
#include <lockstep/app/examination.hpp>
#include <lockstep/app/options.hpp>
#include <lockstep/app/precision.hpp>
#include <lockstep/data/data_loader.hpp>
#include <lockstep/launch/stop_request.hpp>
#include <lockstep/launch/world.hpp>
#include <lockstep/nn/half_precision.hpp>
#include <lockstep/parallel/data_parallel.hpp>
#include <lockstep/parallel/distributed_data_parallel.hpp>
#include <lockstep/parallel/on_cuda.hpp>
#include <lockstep/parallel/reproducible.hpp>
#include <lockstep/parallel/single_device.hpp>
#include <lockstep/scaling/diagnosis.hpp>
#include <lockstep/scaling/profile_of.hpp>
#include <lockstep/scaling/saved_run.hpp>
#include <lockstep/scaling/scaling_report.hpp>
#include <lockstep/train/atomic_file.hpp>
#include <lockstep/train/checkpoint.hpp>
#include <lockstep/train/csv_log.hpp>
#include <lockstep/train/evaluation.hpp>
#include <lockstep/train/keep_best.hpp>
#include <lockstep/train/layer_times.hpp>
#include <lockstep/train/metrics_log.hpp>
#include <lockstep/train/observer.hpp>
#include <lockstep/train/parameters_sha256.hpp>
#include <lockstep/train/progress_bar.hpp>
#include <lockstep/train/run_json.hpp>
#include <lockstep/train/safetensors.hpp>
#include <lockstep/train/tensorboard.hpp>
#include <lockstep/train/trace.hpp>
#include <lockstep/train/trace_file.hpp>
#include <lockstep/train/trainer.hpp>

namespace lockstep::inline LOCKSTEP_ABI::app {

/// What `app::run` hands to a rank's train function: the flags, the rank's place in the world, and the one place where
/// a flag chooses the parallel policy's type.
template <class Options>
class Training : public detail::Additions {
 public:
  Training(Options const& options, launch::World& world) : options_(options), world_(world) {}

  [[nodiscard]] Options const& options() const noexcept { return options_; }
  [[nodiscard]] launch::World& world() const noexcept { return world_; }
  /// The signal that `fit` has answered by ending before it was over; 0: none. Of a rank that got none itself: SIGTERM.
  [[nodiscard]] int stopped_by() const noexcept { return stopped_by_; }
  /// One rank speaks for all.
  [[nodiscard]] bool speaks() const noexcept { return world_.rank == 0; }
  [[nodiscard]] data::DataLoaderOptions loader_options() const noexcept {
    return {.batch_size = options_.shard_size(),
            .workers = options_.num_workers,
            .prefetch = options_.prefetch,
            .seed = options_.seed};
  }

  /// f(policy) with the policy that --parallel names, on the backend that --backend names.
  template <class F>
  decltype(auto) with_policy(F&& f) const {
    switch (options_.parallel) {
      case Parallel::dp:
        return on_backend(parallel::DataParallel{.devices = options_.devices, .threads = options_.threads}, f);
      case Parallel::ddp:
        if constexpr (detail::built_with_nccl<>)
          if (options_.engine == launch::Engine::nccl) return over_nccl<detail::Nccl>(f);
        return on_backend(distributed(detail::connect(world_)), f);
      case Parallel::single:
        break;
    }
    return on_backend(parallel::SingleDevice{.threads = options_.threads}, f);
  }

  /// What the flags say about how long and how: epochs, accumulation, clipping, warm-up and schedule.
  template <class Loader>
  [[nodiscard]] FitOptions fit_options(Loader const& loader) const {
    Index const most = options_.max_steps.value_or(std::numeric_limits<Index>::max());
    Index const steps = options_.epochs > 0 ? std::min(epoch_steps(loader) * options_.epochs, most) : most;
    return {.epochs = options_.epochs,
            .max_steps = options_.max_steps.value_or(0),
            .accumulation = options_.grad_accum_steps,
            .clip_norm = options_.clip_norm.value_or(0),
            .schedule = {.warmup_steps = std::min(warmup_steps(loader), steps),
                         .total_steps = steps,
                         .kind = options_.lr_schedule,
                         .min_factor = options_.lr_min_factor},
            .check_replicas_every = options_.check_replicas_every,
            .evaluate_every_steps = options_.eval_every,
            .patience = options_.patience,
            .plateau = {.patience = options_.plateau, .factor = options_.plateau_factor},
            .judge_by = options_.best_by.empty() ? "loss" : options_.best_by,
            .stop = world_.stop_request ? world_.stop_request->token() : std::stop_token(),
            .timed_products = options_.timed_products,
            .alike = options_.alike};
  }

  /// Trains `model` under the policy that --parallel names. One rank prints what was started and how it goes, and
  /// leaves metrics.jsonl, metrics.csv, run.json and checkpoints/ in --save-dir; `metadata` is saved with the
  /// parameters. Its learning rate is that of --lr, and its weight decay that of --weight-decay where the flag is
  /// given. then(trainer) is called on all ranks once the run is over, where it was over before, and with
  /// --evaluate, but not of one that was stopped, --dry-run or --doctor: to write predictions, for instance.
  /// @returns how the run went
  /// @throws what the trainer throws, DataError when --save-dir cannot be written to, and ConfigError for a second fit
  /// where there is one, or a learning rate of the optimizer's own that would be lost
  template <class Model, class Optimizer, class Loader, class Evaluation = train::NoEvaluation,
            class Then = detail::NothingThen>
  train::RunRecord fit(Model model, Optimizer optimizer, Loader& loader, Evaluation const& evaluation = {},
                       train::Metadata const& metadata = {}, Then const& then = {}) const {
    if (fitted_ && !options_.save_dir.empty())
      throw ConfigError(
          "Training::fit: a second one, and --save-dir has the files of the first, with which it would be taken to be "
          "over; make each phase a run of its own, with a --save-dir, that begins with --init-from");
    fitted_ = true;
    detail::take_settings(options_, optimizer);
    if constexpr (requires { options_.precision; }) {
      if (options_.precision == Precision::bf16)
        return fit_as(nn::InBfloat16<Model>(std::move(model)), optimizer, loader, evaluation, metadata, then);
      if (options_.precision == Precision::fp16)
        return fit_as(nn::InFloat16<Model>(std::move(model)), optimizer, loader, evaluation, metadata, then);
    }
    return fit_as(std::move(model), optimizer, loader, evaluation, metadata, then);
  }

 private:
  static constexpr bool has_precision = requires(Options const& options) { options.precision; };

  template <class Model, class Optimizer, class Loader, class Evaluation, class Then>
  train::RunRecord fit_as(Model model, Optimizer const& optimizer, Loader& loader, Evaluation const& evaluation,
                          train::Metadata const& metadata, Then const& then) const {
    return with_policy([&](auto policy) {
      return fit_with(std::move(policy), std::move(model), optimizer, loader, evaluation, metadata, then);
    });
  }
  template <class Policy, class Model, class Optimizer, class Loader, class Evaluation, class Then>
  train::RunRecord fit_with(Policy policy, Model model, Optimizer const& optimizer, Loader& loader,
                            Evaluation const& evaluation, train::Metadata const& metadata, Then const& then) const {
    parallel::CollectiveCost all_reduce;
    if constexpr (requires { policy.communicator; })
      if (options_.doctor) all_reduce = Examination::measure_all_reduce(policy.communicator, policy.gradient_wire);
    Trainer trainer(std::move(model), optimizer, std::move(policy), options_.seed);
    if (!options_.init_from.empty()) trainer.load(options_.init_from, init_names_);
    if (options_.evaluate) {
      if (speaks()) announce(trainer, loader);
      detail::evaluate_alone(trainer, evaluation, speaks());
      then(trainer);
      return {};
    }
    auto fit = fit_options(loader);
    if (options_.doctor) {
      if (speaks()) announce(trainer, loader);
      auto const found = Examination::make(trainer, loader, evaluation, fit);
      if (found.stopped)
        note_stop();
      else if (speaks())
        tell(found, all_reduce);
      return found.as_it_is;
    }
    if (speaks()) fit.checkpoints = checkpoints(metadata);
    if (options_.dry_run) return rehearse(trainer, loader, evaluation, fit);
    fit.observers = observers_;
    train::ProgressBar progress(stdout);
    std::optional<train::MetricsLog> metrics;
    std::optional<train::CsvLog> table;
#if defined(LOCKSTEP_TENSORBOARD)
    std::optional<train::TensorBoard> events;
#endif
    std::optional<train::KeepBest<decltype(trainer)>> best;
    std::optional<detail::NotOver> not_over;
    if (speaks()) {
      announce(trainer, loader);
      fit.observers.insert(fit.observers.begin(), &progress);  // what others print stands below its line
      if (saves()) fit.observers.push_back(&not_over.emplace(file("run.json")));
      if (saves()) fit.observers.push_back(&metrics.emplace(file("metrics.jsonl")));
      if (saves()) fit.observers.push_back(&table.emplace(file("metrics.csv")));
#if defined(LOCKSTEP_TENSORBOARD)
      if (saves()) fit.observers.push_back(&events.emplace(options_.save_dir));
#endif
      if (saves() && !options_.best_by.empty()) fit.observers.push_back(&best.emplace(trainer, best_file(), metadata));
    }
    std::optional<train::Trace> trace;
    if (options_.trace) fit.trace = &trace.emplace();
    auto record = trainer.fit(loader, evaluation, fit);
    bool const was_over = record.steps > 0 && record.steps == record.resumed();
    if (speaks() && was_over) std::printf("the run had ended with step %lld\n", static_cast<long long>(record.steps));
    if (speaks() && record.loss_scale.skipped > 0)
      std::printf("note: %lld step%s skipped, whose gradients float16 could not hold; the loss scale ends at %g\n",
                  static_cast<long long>(record.loss_scale.skipped), record.loss_scale.skipped == 1 ? " was" : "s were",
                  static_cast<double>(record.loss_scale.scale));
    if (record.stopped) stop(record);
    if (trace && !was_over) leave(*trace, trainer);
    if (best && !was_over && !record.evaluations.empty() && !std::filesystem::exists(best_file()))
      note("there is no best.safetensors, for the best evaluation came before this run, or this --best-by, did");
    if (best && !best->put_aside().empty())
      note("what was the best by something else than --best-by is " + best->put_aside() + " now");
    if (saves() && !record.stopped && !(was_over && std::filesystem::exists(file("run.json"))))
      save(record, trainer.layout(), trainer.values());
    if (!record.stopped) then(trainer);
    return record;
  }

  template <class Trainer, class Loader, class Evaluation>
  train::RunRecord rehearse(Trainer& trainer, Loader& loader, Evaluation const& evaluation, FitOptions fit) const {
    if (speaks()) announce(trainer, loader);
    fit.dry_run = true;
    auto record = trainer.fit(loader, evaluation, fit);
    if (!speaks()) return record;
    std::printf("dry run: %lld samples, %lld steps an epoch, %lld in all", static_cast<long long>(loader.samples()),
                static_cast<long long>(epoch_steps(loader)), static_cast<long long>(fit.schedule.total_steps));
    if (record.steps > 0) std::printf(", of which %lld are done", static_cast<long long>(record.steps));
    if (auto const& peak = record.session.peak_bytes_per_device; !peak.empty())
      std::printf("; %.1f MB on a device for parameters, gradients, optimizer and the first batch's activations",
                  static_cast<double>(*std::max_element(peak.begin(), peak.end())) / 1e6);
    std::printf("\nnothing was trained, and nothing written\n");
    std::fflush(stdout);
    return record;
  }
  template <class Loader>
  [[nodiscard]] Index epoch_steps(Loader const& loader) const {
    auto const shards = static_cast<int>(options_.shards());
    Index const micro_steps = loader.steps({.first = 0, .count = shards, .all = shards});
    return (micro_steps + options_.grad_accum_steps - 1) / options_.grad_accum_steps;
  }

  /// As the flags have it, which may be more than the run.
  template <class Loader>
  [[nodiscard]] Index warmup_steps(Loader const& loader) const {
    if (options_.warmup_steps > 0) return options_.warmup_steps;
    return std::llround(options_.warmup_epochs * static_cast<double>(epoch_steps(loader)));
  }

  void note_stop() const {
    int const signal = world_.stop_request ? world_.stop_request->signal() : 0;
    stopped_by_ = signal != 0 ? signal : SIGTERM;
  }
  void stop(train::RunRecord const& record) const {
    note_stop();
    if (!saves()) return;
    std::printf("saved as %s/step_%lld.safetensors; --resume auto goes on\n", file("checkpoints").c_str(),
                static_cast<long long>(record.steps));
    std::fflush(stdout);
  }
  /// @collective
  template <class Trainer>
  void leave(train::Trace const& trace, Trainer& trainer) const {
    if (trace.empty()) return note("nothing was traced: the run ended before the first step that was to be");
    train::write_trace(file("trace.json"), trainer, trace);
    if (!speaks()) return;
    auto const times = train::layer_times(trace, trainer.layout());
    train::write_layer_times(file("layers.csv"), times);
    std::printf("rank 0's steps %lld to %lld, on average (all layers: layers.csv; when: trace.json):\n%s",
                static_cast<long long>(trace.first_step()),
                static_cast<long long>(trace.first_step() + trace.steps() - 1), train::layer_table(times).c_str());
    if (trace.left_out() > 0) note(std::to_string(trace.left_out()) + " marks found no room in the trace");
    std::fflush(stdout);
  }

  [[nodiscard]] train::Checkpoints checkpoints(train::Metadata const& metadata) const {
    train::Checkpoints checkpoints{.metadata = metadata};
    if (saves()) {
      checkpoints.folder = file("checkpoints");
      checkpoints.every = options_.checkpoint_every;
      checkpoints.keep = options_.keep_checkpoints;
    }
    bool const automatic = options_.resume == Options::automatic, never = options_.resume == Options::never;
    if (saves() && (automatic || world_.restarts > 0))  // ranks that were started anew go on where they were
      checkpoints.resume = train::newest_checkpoint(checkpoints.folder);
    if (checkpoints.resume.empty() && !automatic && !never) checkpoints.resume = options_.resume;
    return checkpoints;
  }

  [[nodiscard]] Precision precision() const noexcept {
    if constexpr (requires { options_.precision; }) return options_.precision;
    return Precision::fp32;
  }
  /// Policy and communicator know one space.
  template <class Nccl, class F>
  decltype(auto) over_nccl(F& f) const {
    return f(parallel::OnCuda{distributed(detail::connect_gpu<Nccl>(world_, gpus().front())), gpus()});
  }
  template <class Communicator>
  [[nodiscard]] auto distributed(Communicator communicator) const {
    return parallel::DistributedDataParallel{std::move(communicator),  bucket_bytes(),
                                             options_.threads,         parallel::BufferPolicy::first,
                                             options_.shard_optimizer, options_.gradient_wire};
  }
  template <class Policy, class F>
  decltype(auto) on_backend(Policy policy, F& f) const {
    if constexpr (built_with_cuda<>)
      if (options_.backend == Backend::cuda)
        return f(parallel::Reproducible{parallel::OnCuda{std::move(policy), gpus()}, options_.reproducible});
    return f(parallel::Reproducible{std::move(policy), options_.reproducible});
  }
  /// All of this process; with ddp each rank of a host has one, in turn.
  [[nodiscard]] std::vector<int> gpus() const {
    auto const& all = options_.gpus;
    if (options_.parallel != Parallel::ddp) return all;
    return {all[static_cast<std::size_t>(world_.local_rank) % all.size()]};
  }
  [[nodiscard]] std::size_t bucket_bytes() const noexcept {
    return static_cast<std::size_t>(options_.bucket_cap_mb.value_or(0) * (1 << 20));
  }

  void announce(auto const& trainer, auto const& loader) const {
    Index const batch = loader.options().batch_size * options_.shards() / options_.all_devices();
    auto const* const most = batch == options_.batch_size ? "" : "up to ";  // as of batches by tokens
    std::printf(
        "%s: %s, %d rank%s x %d device%s x %d thread%s, engine %s, batch %s%td per rank or device, effective batch "
        "%s%td, %td parameters\n",
        options_.program.c_str(), name(options_.parallel), options_.ranks, plural(options_.ranks), options_.devices,
        plural(options_.devices), options_.threads, plural(options_.threads), trainer.policy().engine(), most, batch,
        most, batch * options_.all_devices() * options_.grad_accum_steps, trainer.layout().parameters());
    if (options_.reproducible > 0)
      std::printf("reproducible: every micro-step has %d shards of %td, and bits do not depend on ranks or devices\n",
                  options_.reproducible, loader.options().batch_size);
    for (auto const& warning : options_.warnings) note(warning);
    auto const warmup = warmup_steps(loader), steps = fit_options(loader).schedule.total_steps;
    if (warmup > steps)
      note("--warmup-" + (options_.warmup_steps > 0 ? "steps" : "epochs " + detail::shortest(options_.warmup_epochs)) +
           " would be " + std::to_string(warmup) + " steps, and the run has " + std::to_string(steps) +
           ": the learning rate rises to the last of them, and does not fall");
    if (options_.warmup_epochs > 0 && warmup == 0)
      note("--warmup-epochs " + detail::shortest(options_.warmup_epochs) + " is less than half a step: there is none");
    std::fflush(stdout);
  }
  void note(std::string const& what) const {
    if (!speaks()) return;
    std::printf("note: %s\n", what.c_str());
    std::fflush(stdout);
  }
  [[nodiscard]] bool saves() const noexcept { return speaks() && !options_.save_dir.empty(); }
  [[nodiscard]] std::string file(std::string const& name) const { return options_.save_dir + "/" + name; }
  [[nodiscard]] std::string best_file() const { return file("checkpoints/best.safetensors"); }

  [[nodiscard]] train::RunLabels labels(train::RunRecord const& record) const {
    return detail::run_labels(options_, name(precision()), record);
  }
  void save(train::RunRecord const& record, nn::ParameterLayout const& layout, std::span<float const> values) const {
    auto labels = this->labels(record);
    labels.parameters_sha256 = train::parameters_sha256(layout, values);
    train::write_run_json(file("run.json"), record, labels);
  }

  /// What --doctor found: printed and, in --save-dir, left as doctor.json.
  void tell(Examination const& found, parallel::CollectiveCost const& all_reduce) const {
    auto const& record = found.as_it_is;
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
        .spares_bfloat16 = has_precision && precision() == Precision::fp32 && multiplies_bfloat16_tiles(),
        .all_reduce = all_reduce};
    auto const run = train::run_json(record, labels);
    auto workload = scaling::SavedRun(run, "doctor").workload();
    if (found.loader_samples_per_second > 0)
      workload.load_seconds = workload.samples * record.devices / found.loader_samples_per_second;
    scaling::ScalingReport const report(workload, {}, scaling::ScalingReport::powers_of_two());
    std::printf("%s\n%s\n\n%s", diagnosis.text().c_str(), labels.says.c_str(), report.text().c_str());
    if (!saves()) return;
    train::AtomicFile out(file("doctor.json"));
    out.write(diagnosis.json(run));
    out.commit();
  }
  static char const* plural(int count) noexcept { return count == 1 ? "" : "s"; }

  Options const& options_;
  launch::World& world_;
  mutable int stopped_by_ = 0;
  mutable bool fitted_ = false;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::app
