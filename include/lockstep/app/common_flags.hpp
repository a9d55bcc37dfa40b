// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>

#include <lockstep/app/backend.hpp>
#include <lockstep/app/command.hpp>
#include <lockstep/app/detail/combinations.hpp>
#include <lockstep/app/options.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/data/data_loader_options.hpp>
#include <lockstep/launch/environment.hpp>
#include <lockstep/parallel/reproducible.hpp>
#include <lockstep/parallel/wire_format.hpp>

namespace lockstep::inline LOCKSTEP_ABI::app {

/// The flags that all trainers share. Added to a command, they write into `options`; `resolve` then fills in what
/// depends on several of them, or on the machine, and refuses combinations that cannot work.
class CommonFlags {
 public:
  /// Both must outlive this object.
  CommonFlags(Command& command, Options& options) : options_(options), command_(command) {
    add_parallel(command);
    add_data(command);
    add_training(command);
    command.add("--dry-run", options_.dry_run,
                "Check flags, data and model by one batch, say what would be trained, and end");
    command.add_config();
  }
  CommonFlags(CommonFlags const&) = delete;
  CommonFlags& operator=(CommonFlags const&) = delete;

  /// Call once, after `Command::parse`. `cores` is how many processors the ranks of this host may use together, `place`
  /// where a launcher put this process, `gpus` what the machine has of those.
  /// @throws ConfigError with a sentence about the combination
  void resolve(int cores, launch::Environment const& place = {}, Gpus const& gpus = {}) {
    resolve_place(place, gpus);
    resolve_rest(cores, place, gpus);
  }
  /// The first half of `resolve`, in which hosts may differ.
  void resolve_place(launch::Environment const& place, Gpus const& gpus) {
    resolve_backend(gpus);
    check_local_rank(place);
  }
  /// The other half.
  void resolve_rest(int cores, launch::Environment const& place, Gpus const& gpus) {
    check_mpi(place);
    resolve_ranks(cores, place);
    resolve_reproducible();
    resolve_engine(place, gpus);
    resolve_batch_size();
    resolve_epochs();
    options_.cores = cores;
    int const here = place.size > 1 ? place.local_size : options_.ranks;
    options_.threads = threads_.value_or(std::max(1, cores / (here * options_.devices)));
    resolve_learning_rate();
    detail::Combinations(options_, command_).check();
  }

 private:
  static constexpr int most_ranks = launch::most_local_ranks;
  static constexpr int most_threads = 1024;
  static constexpr int most_shards = 1 << 16;
  static constexpr Index most_samples = Index{1} << 32;
  static constexpr Index unlimited = std::numeric_limits<Index>::max();
  static constexpr double longest_wait = 3600;
  static constexpr double unbounded = std::numeric_limits<double>::max();
  static constexpr int automatic = 0;  // nproc: as many as there are GPUs to use, or cores

  void add_parallel(Command& command) {
    command.add("--parallel,--multi-gpu", parallel_,
                {{"single", Parallel::single}, {"dp", Parallel::dp}, {"ddp", Parallel::ddp}},
                "One device, several in one process, or one per rank; default: ddp with several ranks, dp with several "
                "devices, else single");
    command.add("--backend", backend_, {{"host", Backend::host}, {"cuda", Backend::cuda}},
                "Where models run; default: cuda where the program was built with it and there is a GPU, else host");
    command.add("--devices", devices_, 1, most_ranks, "Devices of this process; with ddp: that many ranks, as threads");
    command.add(
        "--gpu-ids", "GPUs to use, as in 0,1: a device on each",
        [this](auto const& name, auto const& text) {
          gpu_ids_ = text;
          options_.gpus = detail::parse_numbers<int>(name, text, 0, most_ranks - 1);
        },
        Takes::list);
    command.add(
        "--nproc", "Processes to start, each a rank; auto: one for each GPU, on the host for each core (default 1)",
        [this](auto const& name, auto const& text) {
          nproc_ = text == "auto" ? automatic : detail::parse_number<int>(name, text, 1, most_ranks, ", or auto");
        });
    command.add("--engine", engine_,
                {{"process", launch::Engine::process}, {"mpi", launch::Engine::mpi}, {"nccl", launch::Engine::nccl}},
                "What joins ranks: nccl GPUs on any number of hosts, process any ranks on one, mpi host ranks on "
                "several; default: nccl where every rank is a process with a GPU, else process");
    command.add("--master-addr", options_.master_address,
                "With ranks on several hosts: the first one's; default: MASTER_ADDR, or as srun says");
    command.add("--master-port", options_.master_port, 0, 65535,
                "A free port of that host; default: MASTER_PORT, or one that follows from the run's name");
    command.add("--join-timeout", options_.join_timeout, 1, longest_wait,
                "Seconds that ranks which another launcher has started get to find each other");
    command.add("--stall-timeout", options_.stall_timeout, 0, unbounded,
                "Seconds that a rank waits for another that is alive before it gives up; 0: as long as it takes");
    command.add("--host-timeout", options_.host_timeout, 2, longest_wait,
                "Seconds that another host may be out of reach before its ranks count as lost");
    command.add("--max-restarts", options_.max_restarts, 0, 1000,
                "With --nproc: how often all ranks are started anew after one has failed");
    command.add("--local-rank,--local_rank", local_rank_, 0, most_ranks,
                "What python -m torch.distributed.launch adds; only compared with LOCAL_RANK");
    command.add("--threads", threads_, 1, most_threads, "Threads for each device; default: cores / devices");
    command.add("--bucket-cap-mb", options_.bucket_cap_mb, 0.001, 1e6,
                "Gradients that leave together, in MiB, with ddp; default: measured at the start");
    command.add("--check-replicas-every", options_.check_replicas_every, 0, unlimited,
                "Steps after which replicas compare their parameters' bits, with dp and ddp; 0: never");
    command.add("--shard-optimizer", options_.shard_optimizer,
                "With ddp: each rank keeps and steps its part of the optimizer's moments only; less memory, same bits");
    command.add("--timed-products", options_.timed_products,
                "On GPUs: after the first step the fastest algorithm of each product is found and taken; bits then "
                "differ from run to run");
    command.add("--gradient-wire", options_.gradient_wire,
                {{"fp32", parallel::WireFormat::float32},
                 {"bf16", parallel::WireFormat::bfloat16},
                 {"fp16", parallel::WireFormat::float16}},
                "With ddp: what gradients are sent as; in 16 bits half the bytes; fp16 with --precision fp16 only");
    command.add("--reproducible", reproducible_, 1, most_shards,
                "Shards, a power of two, in which each batch of all ranks is computed and summed: bits are then the "
                "same for every number of ranks or devices that divides them");
  }

  void add_data(Command& command) {
    command.add("--data", options_.data, "What to train on");
    command.add("--eval-data", options_.eval_data,
                "What to evaluate on; default: the data's own test part, else a tenth taken out of training");
    command.add("--num-workers", options_.num_workers, 0, 256,
                "Threads of each rank that load batches; 0: the training thread does");
    command.add("--prefetch", options_.prefetch, 0, 1024, "Batches that are loaded ahead");
    command.add("--on-failure", options_.on_failure,
                {{"raise", data::OnFailure::raise},
                 {"skip", data::OnFailure::skip},
                 {"substitute", data::OnFailure::substitute}},
                "Treatment of a sample that cannot be read: an error, a batch without it, or another in its place");
    command.add("--seed", options_.seed, 0, std::numeric_limits<std::uint64_t>::max(),
                "Of order, augmentation, initial parameters and dropout");
    command.add("--save-dir", options_.save_dir,
                "Receives run.json, metrics.jsonl, metrics.csv and checkpoints/; default: nothing is written");
    command.add(
        "--trace", options_.trace,
        "Records ten steps after the first ones: trace.json and layers.csv in --save-dir, and a table of layers");
    command.add("--checkpoint-every", options_.checkpoint_every, 0, unlimited,
                "Steps after which the run is saved, to be gone on with; 0: only after the last");
    command.add("--keep-checkpoints", options_.keep_checkpoints, 0, unlimited,
                "Checkpoints to keep, the newest; best.safetensors stays beside them; 0: all");
    command.add("--resume", options_.resume,
                "never, auto (from the newest checkpoint in --save-dir, if there is one), or a checkpoint's path");
    command.add("--doctor", options_.doctor,
                "Instead of training: measure the loader, the model and communication apart for some seconds, and say "
                "what to change and what more ranks would give");
    command.add(
        "--init-from", options_.init_from,
        "Parameters to start from: a .safetensors file that a run of this model left; a run that --resume auto goes on "
        "with has its own");
    command.add("--evaluate", options_.evaluate,
                "Instead of training: evaluate the parameters of --init-from once, and print what is found");
  }

  void add_training(Command& command) {
    command.add("--epochs", epochs_, 1, 1000000,
                "Passes over the training data; default " + detail::shortest(options_.epochs) +
                    ", with --max-steps as many as it takes");
    command.add("--max-steps", options_.max_steps, 1, unlimited, "Stop after so many optimizer steps");
    command.add("--eval-every", options_.eval_every, 0, unlimited,
                "Steps from one evaluation to the next; 0: there is one after each epoch");
    command.add("--batch-size", batch_size_, 1, most_samples,
                "Samples in a batch, per rank or device; default " + detail::shortest(options_.batch_size));
    command.add("--global-batch-size", global_batch_size_, 1, most_samples,
                "Samples in an optimizer step of all ranks; instead of --batch-size");
    command.add("--grad-accum-steps", options_.grad_accum_steps, 1, 1 << 20,
                "Batches whose gradients are summed before a step");
    command.add("--lr,--learning-rate", options_.learning_rate, 0, unbounded, "Learning rate");
    command.add("--lr-schedule", options_.lr_schedule,
                {{"constant", optim::Schedule::Kind::constant},
                 {"cosine", optim::Schedule::Kind::cosine},
                 {"linear", optim::Schedule::Kind::linear},
                 {"inverse-sqrt", optim::Schedule::Kind::inverse_square_root}},
                "How the learning rate falls after its warm-up");
    command.add("--lr-scaling", options_.lr_scaling,
                {{"none", optim::LearningRateScaling::none},
                 {"linear", optim::LearningRateScaling::linear},
                 {"sqrt", optim::LearningRateScaling::sqrt}},
                "How the learning rate grows with effective batch / base batch");
    command.add("--base-batch-size", options_.base_batch_size, 1, most_samples,
                "For --lr-scaling; default: one rank's batch");
    command.add("--lr-min-factor", options_.lr_min_factor, 0, 1, "Of a cosine or a line: where it ends, of the rate");
    command.add("--warmup-epochs", options_.warmup_epochs, 0, 1e6, "Epochs over which the learning rate rises from 0");
    command.add("--warmup-steps", options_.warmup_steps, 0, unlimited,
                "The same in optimizer steps; 0: --warmup-epochs");
    command.add("--weight-decay", options_.weight_decay, 0, unbounded, "Of AdamW");
    command.add("--clip-norm", options_.clip_norm, 0, unbounded, "Largest norm of the gradient; 0: there is none");
    command.add(
        "--best-by", options_.best_by,
        "Keep the parameters of the best evaluation in checkpoints/best.safetensors: loss, a metric's name, or none");
    command.add("--patience", options_.patience, 0, unlimited,
                "Evaluations in a row, none the best by --best-by or else loss, that end the run; 0: none do");
    command.add("--lr-plateau", options_.plateau, 0, unlimited,
                "Evaluations in a row, none the best, after which the learning rate falls; 0: none do");
    command.add("--lr-plateau-factor", options_.plateau_factor, 0, 0.999, "What it is multiplied by then");
  }

  void resolve_backend(Gpus const& gpus) {
    bool const named = !gpu_ids_.empty();
    auto const backend = backend_.value_or(named || gpus.count > 0 ? Backend::cuda : Backend::host);
    auto const flag = named ? "--gpu-ids " + gpu_ids_ : "--backend cuda";
    if (backend == Backend::host && named)
      throw ConfigError(flag + " with --backend host: GPUs serve cuda; leave out either");
    if (backend == Backend::cuda && !gpus.built)
      throw ConfigError(flag + (named ? ": there is no such GPU, as this program was built without CUDA; use --devices "
                                        "N for host devices"
                                      : ": this program was built without CUDA; use --backend host, or leave --backend "
                                        "out"));
    if (backend == Backend::cuda && gpus.count == 0)
      throw ConfigError(flag + ": there is no GPU to use (" + gpus.why + "); use --backend host");
    for (int const gpu : options_.gpus)
      if (gpu >= gpus.count)
        throw ConfigError(flag + ": there is no GPU " + std::to_string(gpu) + "; this process sees " +
                          std::to_string(gpus.count) + ", numbered from 0");
    options_.backend = backend;
    if (backend == Backend::cuda && !named)
      for (int gpu = 0; gpu < gpus.count; ++gpu) options_.gpus.push_back(gpu);
  }

  void check_local_rank(launch::Environment const& place) const {
    if (!local_rank_ || *local_rank_ == place.local_rank || place.launcher == launch::Launcher::lockstep) return;
    auto const flag = "--local-rank " + std::to_string(*local_rank_);
    if (place.launcher == launch::Launcher::single)
      throw ConfigError(flag + ": no launcher's variables say how many ranks there are; pass on RANK, WORLD_SIZE, " +
                        "LOCAL_RANK and LOCAL_WORLD_SIZE, or start with torchrun --no-python");
    throw ConfigError(flag + " and " + name(place.launcher) + " (" + place.told + ") disagree; leave --local-rank out");
  }

  void check_mpi(launch::Environment const& place) const {
    if (engine_ != launch::Engine::mpi) return;
#if !defined(LOCKSTEP_MPI)
    throw ConfigError(
        "--engine mpi: this program was built without MPI (Debian: libopenmpi-dev); use --engine process");
#endif
    if (place.launcher == launch::Launcher::single || place.launcher == launch::Launcher::lockstep)
      throw ConfigError("--engine mpi: no MPI launcher has started this program; start with mpirun -n N");
  }

  void resolve_ranks(int cores, launch::Environment const& place) {
    bool const started = place.size > 1 && place.launcher != launch::Launcher::lockstep;
    if (started && nproc_)
      throw ConfigError(std::string("--nproc under ") + name(place.launcher) + " (" + place.told +
                        "): the ranks have been started already; leave out either");
    int const units = options_.backend == Backend::cuda ? std::max(1, static_cast<int>(options_.gpus.size())) : cores;
    int const nproc = started ? place.size : nproc_ == automatic ? units : nproc_.value_or(1);
    bool const on_each = !gpu_ids_.empty() && nproc == 1;  // of the GPUs that are named; several ranks share them
    int const devices = devices_.value_or(on_each ? static_cast<int>(options_.gpus.size()) : 1);
    bool const joins = nproc > 1 || engine_ == launch::Engine::nccl;
    auto const parallel = parallel_.value_or(joins ? Parallel::ddp : devices > 1 ? Parallel::dp : Parallel::single);
    auto const flag = std::string("--parallel ") + name(parallel);
    auto const ranks =
        started ? std::to_string(nproc) + " ranks of " + name(place.launcher) : "--nproc " + std::to_string(nproc);
    auto const wide = devices_ ? "--devices " + std::to_string(devices) : "--gpu-ids " + gpu_ids_;
    if (parallel != Parallel::ddp && nproc > 1)
      throw ConfigError(flag + " with " + ranks + ": several ranks need --parallel ddp; " +
                        (started ? "start one" : "leave --nproc out") + ", or use ddp");
    if (parallel == Parallel::single && devices > 1)
      throw ConfigError(flag + " with " + wide +
                        ": several devices need --parallel dp or ddp; leave --devices out, or use one of them");
    if (nproc > 1 && devices > 1)
      throw ConfigError(ranks + " with " + wide +
                        ": ddp has one device in each rank; use --nproc for processes or --devices for threads");

    options_.parallel = parallel;
    options_.nproc = started ? 1 : nproc;
    if (options_.max_restarts > 0 && options_.nproc == 1)
      throw ConfigError("--max-restarts without --nproc: only processes that this program starts are started anew");
    if (options_.max_restarts > 0 && options_.checkpoint_every == 0)
      options_.warnings.push_back(
          "--max-restarts without --checkpoint-every: ranks that are started anew begin with the first step again");
    options_.ranks = parallel == Parallel::ddp ? std::max(nproc, devices) : 1;
    options_.devices = parallel == Parallel::dp ? devices_.value_or(default_devices()) : 1;
  }

  /// Gradients are summed where they are, where every rank that is started here is a process with a GPU of its own: of
  /// threads, one that gives memory back waits for all GPUs of the process, and so for a sum that it has yet to join.
  /// Another launcher may show each rank but one GPU: there ranks are taken to have one each.
  void resolve_engine(launch::Environment const& place, Gpus const& gpus) {
    bool const cuda = options_.backend == Backend::cuda, ddp = options_.parallel == Parallel::ddp;
    if (engine_ == launch::Engine::nccl) {
      auto const refuse = [](std::string const& what) { throw ConfigError("--engine nccl" + what); };
      if (!cuda) refuse(" with --backend host: NCCL joins GPUs; use --backend cuda, or leave --engine out");
      if (!gpus.joined) refuse(": this program was built without NCCL (lockstep::nccl); use --engine process");
      if (!ddp) refuse(std::string(" with --parallel ") + name(options_.parallel) + ": only ranks are joined; use ddp");
    }
    bool const started = place.size > 1 && place.launcher != launch::Launcher::lockstep;
    bool const enough =
        started || (options_.nproc > 1 && static_cast<std::size_t>(options_.ranks) <= options_.gpus.size());
    bool const best = cuda && ddp && gpus.joined && enough && options_.reproducible == 0;
    options_.engine = engine_.value_or(best ? launch::Engine::nccl : launch::Engine::process);
  }

  void resolve_batch_size() {
    if (batch_size_ && global_batch_size_)
      throw ConfigError("--batch-size with --global-batch-size: one follows from the other; give one of them");
    options_.batch_size = batch_size_.value_or(options_.batch_size);
    Index const devices = options_.all_devices(), shards = options_.shards(), steps = options_.grad_accum_steps;
    bool const reproducible = options_.reproducible > 0;
    if (global_batch_size_) {
      check_multiple("--global-batch-size", *global_batch_size_, shards * steps,
                     std::to_string(shards) + (reproducible ? " shards x " : " ranks or devices x ") +
                         std::to_string(steps) + " accumulation steps");
      options_.batch_size = *global_batch_size_ / (devices * steps);
    } else if (reproducible) {
      check_multiple(
          "--batch-size", options_.batch_size, shards / devices,
          std::to_string(shards) + " shards of --reproducible on " + std::to_string(devices) + " ranks or devices");
    }
  }
  static void check_multiple(char const* flag, Index value, Index unit, std::string const& because) {
    if (value % unit == 0) return;
    Index const nearest = std::max(unit, (value + unit / 2) / unit * unit);
    throw ConfigError(std::string(flag) + " " + std::to_string(value) + ": must be a multiple of " +
                      std::to_string(unit) + " (" + because + "); the nearest that fits is " + std::to_string(nearest));
  }

  void resolve_epochs() {
    if (!epochs_ && options_.max_steps)
      options_.epochs = 0;
    else
      options_.epochs = epochs_.value_or(options_.epochs), epochs_ = options_.epochs;
  }

  /// What would make results depend on the number of ranks or devices is refused.
  void resolve_reproducible() {
    if (!reproducible_) return;
    options_.reproducible = *reproducible_;
    auto const flag = "--reproducible " + std::to_string(options_.reproducible);
    auto const why = parallel::why_not_dealt(options_.reproducible, static_cast<int>(options_.all_devices()));
    if (!why.empty()) throw ConfigError(flag + ": " + why);
    if (engine_ == launch::Engine::nccl)
      throw ConfigError(flag +
                        " with --engine nccl: NCCL adds in an order of its own, which depends on the number of " +
                        "ranks; leave --engine out");
    if (options_.lr_scaling != optim::LearningRateScaling::none && !options_.base_batch_size)
      throw ConfigError(flag + " with --lr-scaling: its base is one rank's batch, and so depends on the number of " +
                        "ranks; give --base-batch-size");
  }

  void resolve_learning_rate() {
    if (command_.given("--warmup-epochs")) {
      if (command_.given("--warmup-steps"))
        throw ConfigError("--warmup-steps with --warmup-epochs: they say the same in two ways; give one of them");
      options_.warmup_steps = 0;  // a default of the program's
    }
    if (options_.lr_scaling == optim::LearningRateScaling::none) {
      if (options_.base_batch_size)
        throw ConfigError(
            "--base-batch-size without --lr-scaling: it would change nothing; add --lr-scaling linear or sqrt, or "
            "leave it out");
    } else if (options_.warmup_epochs == 0 && options_.warmup_steps == 0 &&
               options_.effective_batch_size() > options_.base_batch_size.value_or(options_.batch_size)) {
      options_.warnings.push_back(
          "the learning rate is scaled up without warm-up; --warmup-epochs 1 makes the start safer");
    }
  }

  /// Of dp: one for each GPU; on the host two.
  [[nodiscard]] int default_devices() const noexcept {
    return options_.backend == Backend::cuda ? static_cast<int>(options_.gpus.size()) : 2;
  }

  Options& options_;
  Command const& command_;
  std::optional<Parallel> parallel_;
  std::optional<Backend> backend_;
  std::optional<launch::Engine> engine_;
  std::optional<int> devices_;
  std::string gpu_ids_;
  std::optional<int> nproc_;
  std::optional<int> threads_;
  std::optional<int> local_rank_;
  std::optional<int> reproducible_;
  std::optional<int> epochs_;
  std::optional<Index> batch_size_;
  std::optional<Index> global_batch_size_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::app
