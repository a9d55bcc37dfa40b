// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/app/backend.hpp>
#include <lockstep/app/detail/additions.hpp>
#include <lockstep/app/detail/given_flags.hpp>
#include <lockstep/app/detail/mpi.hpp>
#include <lockstep/app/detail/nccl.hpp>
#include <lockstep/app/detail/parse_number.hpp>
#include <lockstep/app/detail/run_logs.hpp>
#include <lockstep/app/detail/run_output.hpp>
#include <lockstep/app/detail/saved_file.hpp>
#include <lockstep/app/examination.hpp>
#include <lockstep/app/options.hpp>
#include <lockstep/app/precision.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/progress.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/launch/stop_request.hpp>
#include <lockstep/launch/world.hpp>
#include <lockstep/nn/autograd/half_precision.hpp>
#include <lockstep/parallel/distributed_options.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/on_cuda.hpp>
#include <lockstep/parallel/policy/reproducible.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/checkpoint/checkpoint.hpp>
#include <lockstep/train/checkpoint/keep_best.hpp>
#include <lockstep/train/files/safetensors.hpp>
#include <lockstep/train/logs/observer.hpp>
#include <lockstep/train/logs/progress_bar.hpp>
#include <lockstep/train/logs/unreadable_samples.hpp>
#include <lockstep/train/trace/trace.hpp>
#include <lockstep/train/trace/trace_file.hpp>
#include <lockstep/train/trainer/evaluation.hpp>
#include <lockstep/train/trainer/trainer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

/// Applies the flags to the program's optimizer.
/// @throws ConfigError if the program sets a learning rate that the flag's default would replace, or if --weight-decay
/// is given for an optimizer without one
template <class Optimizer>
void apply_settings(Options const& options, Optimizer& optimizer) {
  auto const gives = [&](char const* flag) {
    return std::find(options.given.begin(), options.given.end(), flag) != options.given.end();
  };
  bool own_rate = false, own_decay = false;  // unknown for optimizers without a default constructor
  if constexpr (std::is_default_constructible_v<Optimizer>) {
    Optimizer const plain;
    own_rate = optimizer.learning_rate != plain.learning_rate;
    if constexpr (requires { optimizer.weight_decay; }) own_decay = optimizer.weight_decay != plain.weight_decay;
  } else if constexpr (requires { Optimizer::default_learning_rate(); }) {
    own_rate = optimizer.learning_rate != Optimizer::default_learning_rate();
  }
  auto const rate = optimizer.learning_rate;
  if (own_rate && rate != options.learning_rate && rate != options.scaled_learning_rate() && !gives("--lr"))
    throw ConfigError("Training::fit: the optimizer's learning rate is " + shortest(rate) +
                      ", but --lr has the default " + shortest(options.learning_rate) +
                      ", which applies; set learning_rate in the program's Options");
  optimizer.learning_rate = options.doctor ? 0 : options.scaled_learning_rate();
  if constexpr (requires { optimizer.weight_decay; }) {
    bool const programs = options.weight_decay != Options().weight_decay && !own_decay;
    if (gives("--weight-decay") || programs) optimizer.weight_decay = options.weight_decay;
  } else if (gives("--weight-decay")) {
    throw ConfigError("--weight-decay: the program's optimizer" +
                      (optim::name_of<Optimizer>().empty() ? "" : " " + optim::name_of<Optimizer>()) +
                      " has no weight decay of its own to set; leave the flag out");
  }
}

/// Returns the program's metadata with its flags, which --evaluate reads, unless it has metadata of that name.
inline train::Metadata with_flags(train::Metadata metadata, Options const& options) {
  bool const taken =
      std::any_of(metadata.begin(), metadata.end(), [](auto const& each) { return each.first == saved_flags_key; });
  if (!taken && !options.saved_flags.empty()) metadata.emplace_back(saved_flags_key, options.saved_flags);
  return metadata;
}

/// Implements --evaluate: evaluates the trainer's parameters and prints the result.   @collective
/// @throws ConfigError if the program has no evaluation
template <class Trainer, class Evaluation>
[[gnu::cold]] void evaluate_alone(Trainer& trainer, Evaluation const& evaluation, bool is_main_rank) {
  if constexpr (std::is_same_v<Evaluation, train::NoEvaluation>) {
    throw ConfigError("--evaluate: this program has no evaluation; leave it out");
  } else {
    Progress progress(is_main_rank ? stdout : nullptr);
    auto const report = trainer.evaluate(evaluation, progress.steps("evaluating"));
    progress.end();
    if (!is_main_rank) return;
    std::printf("%s\n", train::ProgressBar::describe(report).c_str());
    std::fflush(stdout);
  }
}

}}}  // namespace lockstep::app::detail

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {

/// Argument of a rank's train function in `app::run`: the flags, the rank's place in the world, and the function that
/// turns flags into the type of the parallel policy.
template <class Options>
class Training : public detail::Additions {
 public:
  /// Refers to both arguments, which `app::run` owns.
  Training(Options const& options, launch::World& world)
      : options_(options), world_(world), output_(options, world, precision_of(options)) {}

  /// Returns the values of all flags.
  [[nodiscard]] Options const& options() const noexcept { return options_; }
  /// Returns this rank's place.
  [[nodiscard]] launch::World& world() const noexcept { return world_; }
  /// Returns the signal that stopped `fit` early, or 0. It is SIGTERM if another rank received the signal.
  [[nodiscard]] int stopped_by() const noexcept { return stopped_by_; }
  /// Returns a token that is stopped once a signal has requested a stop; it ends waits.
  [[nodiscard]] std::stop_token stop_token() const noexcept {
    return world_.stop_request ? world_.stop_request->token() : std::stop_token();
  }
  /// Returns whether this is rank 0, which prints and saves.
  [[nodiscard]] bool is_main_rank() const noexcept { return output_.is_main_rank(); }
  /// Deprecated: use is_main_rank().
  [[deprecated("is_main_rank"), nodiscard]] bool speaks() const noexcept { return is_main_rank(); }
  /// Returns the options of a loader that the flags set. `batch_size` is that of a shard, see `Options::shard_size`.
  [[nodiscard]] data::DataLoaderOptions loader_options() const {
    auto loader = options_.loader_options;
    detail::GivenFlags::assign(data::describe(loader), options_);
    loader.batch_size = options_.shard_size();
    return loader;
  }

  /// Calls f(policy) with the policy of --parallel on the backend of --backend.
  template <class Function>
  decltype(auto) with_policy(Function&& f) const {
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

  /// Returns the options of a fit by the flags: epochs, accumulation, clipping, warm-up, schedule and others.
  template <class Loader>
  [[nodiscard]] FitOptions fit_options(Loader const& loader) const {
    Index const most = options_.max_steps.value_or(std::numeric_limits<Index>::max());
    Index const steps = options_.epochs > 0 ? std::min(epoch_steps(loader) * options_.epochs, most) : most;
    auto fit = chosen();
    fit.epochs = options_.epochs;
    fit.schedule.warmup_steps = std::min(warmup_steps(loader), steps);
    fit.schedule.total_steps = steps;
    if (fit.patience == 0 && fit.plateau.patience == 0) fit.min_delta = 0;  // a default of the program
    fit.checkpoints = {};                                                   // rank 0 has some
    fit.stop = stop_token();
    fit.equal_on_all_ranks.insert(fit.equal_on_all_ranks.end(), options_.equal_on_all_ranks.begin(),
                                  options_.equal_on_all_ranks.end());
    return fit;
  }

  /// Trains `model` under the policy of --parallel. Rank 0 prints the configuration and the progress. It writes
  /// metrics.jsonl, metrics.csv, run.json and checkpoints/ to --save-dir, with `metadata` next to the parameters. The
  /// learning rate is that of --lr. The weight decay is that of --weight-decay, if the flag is given.
  /// Calls then(trainer) on all ranks after the run, for example to write predictions, or to decode and score texts
  /// (`final_metric`). It is also called if the run was
  /// already complete, and with --evaluate. It is not called after a stop, with --dry-run, or with --doctor.
  /// @returns the record of the run
  /// @throws all that the trainer throws, DataError if --save-dir cannot be written to
  /// @throws ConfigError for a second fit with --save-dir, or if a learning rate of the optimizer would be ignored
  template <class Model, class Optimizer, class Loader, class Evaluation = train::NoEvaluation,
            class Then = detail::DoNothing>
  [[gnu::cold]] train::RunRecord fit(Model model, Optimizer optimizer, Loader& loader,
                                     Evaluation const& evaluation = {}, train::Metadata const& metadata = {},
                                     Then const& then = {}) const {
    if (fitted_ && !options_.save_dir.empty())
      throw ConfigError(
          "Training::fit: a second call, but --save-dir has the files of the first fit, so that the run would count as "
          "complete; make each phase its own run, with its own --save-dir, that begins with --init-from");
    fitted_ = true;
    detail::apply_settings(options_, optimizer);
    if constexpr (requires { options_.precision; }) {
      if (options_.precision == Precision::bf16)
        return fit_as(nn::InBfloat16<Model>(std::move(model)), optimizer, loader, evaluation, metadata, then);
      if (options_.precision == Precision::fp16)
        return fit_as(nn::InFloat16<Model>(std::move(model)), optimizer, loader, evaluation, metadata, then);
    }
    return fit_as(std::move(model), optimizer, loader, evaluation, metadata, then);
  }

 private:
  template <class Model, class Optimizer, class Loader, class Evaluation, class Then>
  [[gnu::cold]] train::RunRecord fit_as(Model model, Optimizer const& optimizer, Loader& loader,
                                        Evaluation const& evaluation, train::Metadata const& metadata,
                                        Then const& then) const {
    return with_policy([&](auto policy) {
      return fit_with(std::move(policy), std::move(model), optimizer, loader, evaluation, metadata, then);
    });
  }
  template <class Policy, class Model, class Optimizer, class Loader, class Evaluation, class Then>
  [[gnu::cold]] train::RunRecord fit_with(Policy policy, Model model, Optimizer const& optimizer, Loader& loader,
                                          Evaluation const& evaluation, train::Metadata const& metadata,
                                          Then const& then) const {
    parallel::CollectiveCost all_reduce;
    if constexpr (requires { policy.communicator; })
      if (options_.doctor) all_reduce = Examination::measure_all_reduce(policy.communicator, policy.gradient_wire);
    Trainer trainer(std::move(model), optimizer, std::move(policy), options_.seed);
    if (!options_.init_from.empty())
      detail::with_saved_file("--init-from", options_.init_from, options_, [&] {
        trainer.load(options_.init_from,
                     options_.evaluate ? detail::names_to_evaluate(options_.init_from, trainer.layout(), init_names_)
                                       : init_names_);
      });
    if (options_.evaluate) {
      if (is_main_rank()) announce(trainer, loader);
      if (evaluates_) {
        detail::evaluate_alone(trainer, evaluation, is_main_rank());
        note_unreadable(evaluation, trainer);
      }
      then(trainer);
      return {};
    }
    auto fit = fit_options(loader);
    if (options_.doctor) {
      if (is_main_rank()) announce(trainer, loader);
      auto const found = Examination::make(trainer, loader, evaluation, fit);
      if (found.stopped)
        note_stop();
      else if (is_main_rank())
        output_.print_diagnosis(found, all_reduce, trainer.layout());
      return found.complete_steps;
    }
    auto const saved = detail::with_flags(metadata, options_);
    if (is_main_rank()) fit.checkpoints = checkpoints(saved);
    if (options_.dry_run) return run_dry(trainer, loader, evaluation, fit);
    fit.observers = observers_;
    std::optional<train::KeepBest<decltype(trainer)>> best;
    std::optional<detail::RunLogs> logs;
    if (is_main_rank()) {
      announce(trainer, loader);
      note_other_flags(fit);
      if (options_.resume == Options::automatic && fit.checkpoints.resume.empty())
        output_.note("--resume auto: there is no checkpoint in " + fit.checkpoints.folder +
                     ", so the run starts from the beginning");
      logs.emplace(output_).join(fit.observers);
      if (output_.saves() && !options_.best_by.empty())
        fit.observers.push_back(&best.emplace(trainer, output_.best_file(), saved, stdout));
    }
    std::optional<train::Trace> trace;
    if (options_.trace) fit.trace = &trace.emplace();
    auto record = resumed(fit, [&] { return trainer.fit(loader, evaluation, fit); });
    output_.print_end(record);
    if (logs) logs->note_removed();
    note_unreadable(evaluation, trainer);
    if (record.stopped) note_stop();
    if (trace && !record.was_complete) write_trace(*trace, trainer);
    if (best && !record.was_complete && !record.evaluations.empty() && !std::filesystem::exists(output_.best_file()))
      output_.note(
          "there is no best.safetensors, because the best evaluation came before this run or used another --best-by");
    if (best && !best->renamed_file().empty())
      output_.note("the best parameters by another --best-by were moved to " + best->renamed_file());
    if (output_.saves() && !record.stopped &&
        !(record.was_complete && std::filesystem::exists(output_.file("run.json"))))
      output_.save(record, trainer.layout(), trainer.values());
    if (!record.stopped) then(trainer);
    if (!record.stopped && output_.saves()) output_.add_final(final_metrics_);
    return record;
  }

  /// Notes the samples that the evaluation's loaders of all ranks have left out. The progress display does the same for
  /// training.   @collective
  template <class Evaluation, class Trainer>
  void note_unreadable(Evaluation const& evaluation, Trainer& trainer) const {
    train::detail::each_evaluation(evaluation, [&](std::string const& prefix, auto const& each) {
      if constexpr (requires { each.loader.options().on_failure; }) {
        if (each.loader.options().on_failure == data::OnFailure::raise) return;
        train::UnreadableSamples unreadable;
        auto const stats = each.loader.stats();
        auto const mine = unreadable.packed(stats.skipped, stats.substituted, stats.failures);
        for (int rank = 0; rank < trainer.ranks(); ++rank) unreadable.add(trainer.broadcast(mine, rank));
        auto const name = prefix.empty() ? "" : " \"" + prefix.substr(0, prefix.size() - 1) + '"';
        if (auto const text = unreadable.note(" of the evaluation" + name); !text.empty()) output_.note(text);
      }
    });
  }

  /// Returns f(), which resumes from the checkpoint of `fit`, if any.
  template <class Function>
  [[nodiscard]] auto resumed(FitOptions const& fit, Function const& f) const {
    auto const* const flag = options_.resume == Options::automatic ? "--resume auto:" : "--resume";
    return detail::with_saved_file(flag, fit.checkpoints.resume, options_, f);
  }

  /// Notes flags of the program that differ from those of the run that saved the parameters: the parameters' shapes do
  /// not show all of them, such as the number of attention heads.
  void note_other_flags(FitOptions const& fit) const {
    auto const& file = fit.checkpoints.resume.empty() ? options_.init_from : fit.checkpoints.resume;
    if (!is_main_rank() || file.empty()) return;
    if (auto const others = detail::other_flags(file, options_); !others.empty()) output_.note(file + others);
  }

  /// Returns the options of a fit that have flags.
  [[nodiscard]] FitOptions chosen() const {
    auto fit = options_.fit_options;
    detail::GivenFlags::assign(describe(fit), options_);
    return fit;
  }

  template <class Trainer, class Loader, class Evaluation>
  [[gnu::cold]] train::RunRecord run_dry(Trainer& trainer, Loader& loader, Evaluation const& evaluation,
                                         FitOptions fit) const {
    if (is_main_rank()) announce(trainer, loader);
    note_other_flags(fit);
    fit.dry_run = true;
    auto record = resumed(fit, [&] { return trainer.fit(loader, evaluation, fit); });
    if (is_main_rank()) output_.print_dry_run(record, loader.samples(), epoch_steps(loader), fit.schedule.total_steps);
    return record;
  }
  template <class Loader>
  [[nodiscard]] Index epoch_steps(Loader const& loader) const {
    auto const shards = static_cast<int>(options_.shards());
    Index const micro_steps = loader.steps({.first = 0, .count = shards, .all = shards});
    return (micro_steps + options_.grad_accum_steps - 1) / options_.grad_accum_steps;
  }

  /// Returns the warm-up by the flags, which may be longer than the run.
  template <class Loader>
  [[nodiscard]] Index warmup_steps(Loader const& loader) const {
    if (options_.warmup_steps > 0) return options_.warmup_steps;
    return std::llround(options_.warmup_epochs * static_cast<double>(epoch_steps(loader)));
  }

  void note_stop() const {
    int const signal = world_.stop_request ? world_.stop_request->signal() : 0;
    stopped_by_ = signal != 0 ? signal : SIGTERM;
  }
  /// @collective
  template <class Trainer>
  [[gnu::cold]] void write_trace(train::Trace const& trace, Trainer& trainer) const {
    if (trace.empty()) return output_.note("nothing was traced: the run ended before the first step to trace");
    train::write_trace(output_.file("trace.json"), trainer, trace);
    output_.print_layer_times(trace, trainer.layout());
  }

  [[nodiscard]] train::Checkpoints checkpoints(train::Metadata const& metadata) const {
    auto checkpoints = output_.saves() ? chosen().checkpoints : train::Checkpoints();
    checkpoints.metadata = metadata;
    if (output_.saves()) checkpoints.folder = output_.file("checkpoints");
    bool const automatic = options_.resume == Options::automatic, never = options_.resume == Options::never;
    if (output_.saves() && (automatic || world_.restarts > 0))  // restarted ranks resume
      checkpoints.resume = train::newest_checkpoint(checkpoints.folder);
    if (checkpoints.resume.empty() && !automatic && !never) checkpoints.resume = options_.resume;
    return checkpoints;
  }

  [[nodiscard]] static std::optional<Precision> precision_of(Options const& options) noexcept {
    if constexpr (requires { options.precision; })
      return options.precision;
    else
      return std::nullopt;
  }
  [[nodiscard]] parallel::MatmulPrecision matmul_precision() const noexcept {
    return precision_of(options_) == Precision::tf32 ? parallel::MatmulPrecision::tf32
                                                     : parallel::MatmulPrecision::float32;
  }
  template <class Policy>
  [[nodiscard]] auto on_gpus(Policy policy) const {
    return parallel::OnCuda{std::move(policy), gpus(), matmul_precision(), options_.attention_kernels};
  }
  /// Passes a policy whose communicator and replicas share one memory space.
  template <class Nccl, class Function>
  decltype(auto) over_nccl(Function& f) const {
    return f(on_gpus(distributed(detail::connect_gpu<Nccl>(world_, gpus().front()))));
  }
  template <class Communicator>
  [[nodiscard]] auto distributed(Communicator communicator) const {
    parallel::DistributedDataParallel policy{std::move(communicator), bucket_bytes(), options_.threads};
    parallel::describe_distributed(policy).assign(parallel::describe_distributed(options_));
    return policy;
  }
  template <class Policy, class Function>
  decltype(auto) on_backend(Policy policy, Function& f) const {
    if constexpr (built_with_cuda<>)
      if (options_.backend == Backend::cuda)
        return f(parallel::Reproducible{on_gpus(std::move(policy)), options_.reproducible});
    return f(parallel::Reproducible{std::move(policy), options_.reproducible});
  }
  /// Returns the GPUs of this process; with ddp each rank of a host has one, in turn.
  [[nodiscard]] std::vector<int> gpus() const {
    auto const& all = options_.gpus;
    if (options_.parallel != Parallel::ddp) return all;
    return {all[static_cast<std::size_t>(world_.local_rank) % all.size()]};
  }
  [[nodiscard]] std::size_t bucket_bytes() const noexcept {
    return static_cast<std::size_t>(options_.bucket_cap_mb.value_or(0) * (1 << 20));
  }

  [[gnu::cold]] void announce(auto const& trainer, auto const& loader) const {
    output_.announce({.engine = trainer.policy().engine(),
                      .batch_size = loader.options().batch_size,
                      .parameters = trainer.layout().parameters(),
                      .warmup = warmup_steps(loader),
                      .steps = fit_options(loader).schedule.total_steps});
  }

  Options const& options_;
  launch::World& world_;
  detail::RunOutput output_;
  mutable int stopped_by_ = 0;
  mutable bool fitted_ = false;
};

}}}  // namespace lockstep::app
