// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/app/detail/given_flags.hpp>
#include <lockstep/app/detail/parse_number.hpp>
#include <lockstep/core/shortest.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

inline constexpr OptionWord parallel_words[] = {
    {"single", Parallel::single}, {"dp", Parallel::dp}, {"ddp", Parallel::ddp}};
inline constexpr OptionWord backend_words[] = {{"host", Backend::host}, {"cuda", Backend::cuda}};
inline constexpr OptionWord engine_words[] = {
    {"process", launch::Engine::process}, {"mpi", launch::Engine::mpi}, {"nccl", launch::Engine::nccl}};
inline constexpr OptionWord attention_words[] = {{"own", parallel::AttentionKernels::own},
                                                 {"cudnn", parallel::AttentionKernels::cudnn}};
inline constexpr OptionWord scaling_words[] = {{"none", optim::LearningRateScaling::none},
                                               {"linear", optim::LearningRateScaling::linear},
                                               {"sqrt", optim::LearningRateScaling::sqrt}};

LOCKSTEP_INLINE void GivenFlags::add_to(Command& command, Options& options) {
  FlagList flags(&command);
  add_all(flags, options);
}

LOCKSTEP_INLINE void GivenFlags::assign(OptionList const& target, Options const& options) {
  GivenFlags unused;
  Options members = options;
  FlagList flags(nullptr);
  unused.add_all(flags, members);
  target.assign(flags.stand_ins(target.owner()));
}

LOCKSTEP_INLINE void GivenFlags::add_all(FlagList& flags, Options& options) {
  auto const fit = describe(options.fit_options);
  auto const loader = data::describe(options.loader_options);
  auto const launch = launch::describe(options.launch_options);
  add_parallelism(flags, options, fit);
  add_launch(flags, options, launch);
  add_data(flags, options, loader);
  add_optimization(flags, options, fit);
  add_evaluation(flags, options, fit);
  add_checkpoints(flags, options, fit);
  add_diagnosis(flags, options);
  for (auto const* list : {&fit, &loader, &launch}) flags.add_rest(*list);
}

LOCKSTEP_INLINE void GivenFlags::add_parallelism(FlagList& flags, Options& options, OptionList const& fit) {
  auto const distributed = parallel::describe_distributed(options);
  flags.group("Parallelism");
  flags.add(
      {.variable = {parallel, parallel_words},
       .flag = {
           .names = "--parallel,--multi-gpu",
           .help =
               "Parallel policy: one device, several devices in one process, or one device per rank; default: ddp for "
               "several ranks, dp for several devices, otherwise single",
           .synonyms = "strategy distributed-strategy parallel-mode"}});
  flags.add(
      {.variable = {backend, backend_words},
       .flag = {.names = "--backend",
                .help =
                    "Processor that trains the model: CPU (host) or GPU (cuda); default: cuda if the program was built "
                    "with CUDA and a GPU is available"}});
  flags.add(
      {.variable = devices,
       .range = {1, max_ranks},
       .flag = {.names = "--devices",
                .help = "Devices of this process; with ddp, ranks run as threads; default: 1, with dp 2 or all GPUs",
                .synonyms = "num-devices n-devices"}});
  flags.add(
      {.variable = gpu_ids,
       .flag = {.names = "--gpu-ids",
                .help = "GPU numbers, separated by commas: one device for each; default: all GPUs",
                .synonyms = "device-ids cuda-visible-devices visible-devices"}},
      [this, &options](auto const& name, auto const& text) {
        gpu_ids = text;
        options.gpus = parse_numbers<int>(name, text, 0, max_ranks - 1);
      },
      Takes::list);
  flags.add({.variable = threads,
             .range = {1, max_threads},
             .flag = {.names = "--threads",
                      .help = "CPU threads per device; default: cores / devices",
                      .synonyms = "num-threads n-threads omp-num-threads"}});
  flags.add(
      {.variable = {engine, engine_words},
       .flag = {.names = "--engine",
                .help =
                    "Communication between ranks: nccl for GPUs, process for one host, mpi for CPUs of several hosts; "
                    "default: nccl if each rank is a process with a GPU, otherwise process"}});
  flags.add({.variable = options.bucket_cap_mb,
             .range = {0.001, 1e6},
             .flag = {.names = "--bucket-cap-mb",
                      .help = "Gradient bucket size in MiB, with ddp; default: measured at the start",
                      .synonyms = "ddp-bucket-cap-mb bucket-size-mb"}});
  flags.add(distributed, "gradient_wire", options.gradient_wire);
  flags.add_rest(distributed);
  flags.add(
      {.variable = reproducible,
       .range = {1, max_shards},
       .flag = {
           .names = "--reproducible",
           .help =
               "Number of shards per batch of all ranks, a power of two: results are bit-identical for any number of "
               "ranks or devices that divides it"}});
  flags.add(fit, "check_replicas_every", options.check_replicas_every);
  flags.add(fit, "autotune_gemm", options.autotune_gemm);
  flags.add(fit, "shapes_ahead", options.shapes_ahead);
  flags.add(
      {.variable = {options.attention_kernels, attention_words},
       .flag = {.names = "--attention-kernels",
                .help = "Kernels of attention in 16 bits, on GPUs: Lockstep's own, or cuDNN's where it has them"}});
}

LOCKSTEP_INLINE void GivenFlags::add_launch(FlagList& flags, Options& options, OptionList const& launch) {
  flags.group("Launch");
  flags.add({.variable = nproc,
             .flag = {.names = "--nproc",
                      .help = "Processes to start, each a rank; auto: one per GPU, or per core on the CPU (default 1)",
                      .synonyms = "nproc-per-node num-processes world-size"}},
            [this](auto const& name, auto const& text) {
              nproc = text == "auto" ? automatic : parse_number<int>(name, text, 1, max_ranks, ", or auto");
            });
  flags.add(launch, "max_restarts", options.max_restarts);
  flags.add(launch, "master_address", options.master_address);
  flags.add(launch, "master_port", options.master_port);
  flags.add(launch, "join_seconds", options.join_timeout);
  flags.add(launch, "limits.stall_seconds", options.stall_timeout);
  flags.add(launch, "limits.silence_seconds", options.host_timeout);
  flags.add(
      {.variable = local_rank,
       .range = {0, max_ranks},
       .flag = {
           .names = "--local-rank,--local_rank",
           .help = "Rank on this host, as python -m torch.distributed.launch passes it; compared with LOCAL_RANK"}});
}

LOCKSTEP_INLINE void GivenFlags::add_data(FlagList& flags, Options& options, OptionList const& loader) {
  flags.group("Data");
  flags.add({.variable = options.data,
             .flag = {.names = "--data",
                      .help = "Training data: a file or folder in the trainer's format",
                      .synonyms = "data-path data-dir data-root dataset dataset-path train-data "
                                  "train-data-path train-file train-path training-data"}});
  flags.add({.variable = options.eval_data,
             .flag = {.names = "--eval-data",
                      .help = "Evaluation data; default: the test part of --data, or a tenth of the training data",
                      .synonyms = "eval-file eval-path val-data val-file val-path valid-data valid-file "
                                  "validation-data validation-file test-data test-file test-path dev-file"}});
  flags.add(loader, "workers", options.num_workers);
  flags.add(loader, "prefetch", options.prefetch);
  flags.add({.variable = prefetch_factor,
             .range = {1, max_prefetch},
             .flag = {.names = "--prefetch-factor",
                      .help = "Batches loaded in advance per data loader thread, instead of --prefetch",
                      .synonyms = "dataloader-prefetch-factor"}});
  flags.add(loader, "on_failure", options.on_failure);
  flags.add(loader, "seed", options.seed);
}

LOCKSTEP_INLINE void GivenFlags::add_optimization(FlagList& flags, Options& options, OptionList const& fit) {
  flags.group("Optimization");
  flags.add(fit, "epochs", epochs, shortest(options.epochs));
  flags.add(fit, "max_steps", options.max_steps);
  flags.add({.variable = batch_size,
             .range = {1, max_samples},
             .flag = {.names = "--batch-size",
                      .help = "Samples per batch of each rank or device; default {}",
                      .synonyms = "batchsize per-device-train-batch-size per-device-batch-size "
                                  "train-batch-size micro-batch-size batch-size-per-gpu "
                                  "per-gpu-batch-size per-gpu-train-batch-size"}},
            shortest(options.batch_size));
  flags.add({.variable = global_batch_size,
             .range = {1, max_samples},
             .flag = {.names = "--global-batch-size",
                      .help = "Samples per optimizer step of all ranks, instead of --batch-size",
                      .synonyms = "total-batch-size effective-batch-size"}});
  flags.add(fit, "accumulation", options.grad_accum_steps);
  flags.add({.variable = options.learning_rate,
             .range = {0},
             .flag = {.names = "--lr,--learning-rate",
                      .help = "Learning rate",
                      .synonyms = "learning-rate base-lr init-lr initial-lr"}});
  flags.add(fit, "schedule.kind", options.lr_schedule);
  flags.add(fit, "schedule.min_factor", options.lr_min_factor);
  flags.add(
      {.variable = {options.lr_scaling, scaling_words},
       .flag = {.names = "--lr-scaling", .help = "Scaling of the learning rate with effective batch / base batch"}});
  flags.add(
      {.variable = options.base_batch_size,
       .range = {1, max_samples},
       .flag = {.names = "--base-batch-size", .help = "Base batch of --lr-scaling; default: the batch of one rank"}});
  flags.add({.variable = options.warmup_epochs,
             .range = {0, 1e6},
             .flag = {.names = "--warmup-epochs",
                      .help = "Warm-up of the learning rate from 0, in epochs",
                      .synonyms = "num-warmup-epochs lr-warmup-epochs"}});
  flags.add({.variable = options.warmup_steps,
             .range = {0},
             .flag = {.names = "--warmup-steps",
                      .help = "Warm-up in optimizer steps; 0: --warmup-epochs applies",
                      .synonyms = "num-warmup-steps n-warmup-steps lr-warmup-steps warmup-iters"}});
  flags.add({.variable = options.weight_decay,
             .range = {0},
             .flag = {.names = "--weight-decay", .help = "AdamW weight-decay coefficient", .synonyms = "wd"}});
  flags.add(fit, "clip_norm", options.clip_norm);
}

LOCKSTEP_INLINE void GivenFlags::add_evaluation(FlagList& flags, Options& options, OptionList const& fit) {
  flags.group("Evaluation and early stopping");
  flags.add(fit, "evaluate_every_steps", options.eval_every);
  flags.add(fit, "best_by", options.best_by);
  flags.add(fit, "patience", options.patience);
  flags.add(fit, "plateau.patience", options.plateau);
  flags.add(fit, "plateau.factor", options.plateau_factor);
  flags.add(
      {.variable = options.evaluate,
       .flag = {.names = "--evaluate", .help = "Evaluate the parameters of --init-from once instead of training"}});
}

LOCKSTEP_INLINE void GivenFlags::add_checkpoints(FlagList& flags, Options& options, OptionList const& fit) {
  flags.group("Checkpoints and logs");
  flags.add(
      {.variable = options.save_dir,
       .flag = {.names = "--save-dir",
                .help = "Output folder for run.json, metrics.jsonl, metrics.csv and checkpoints/; default: no output",
                .synonyms = "output-dir out-dir log-dir logdir logging-dir run-dir results-dir "
                            "checkpoint-dir experiment-dir default-root-dir work-dir"}});
  flags.add(fit, "checkpoints.every", options.checkpoint_every);
  flags.add(fit, "checkpoints.keep", options.keep_checkpoints);
  flags.add(
      {.variable = options.resume,
       .flag = {.names = "--resume",
                .help = "Checkpoint to resume from: never, auto (the newest one in --save-dir, if any), or a path",
                .synonyms = "resume-from ckpt-path"}});
  flags.add({.variable = options.init_from,
             .flag = {.names = "--init-from",
                      .help = "Initial parameters: a .safetensors file of this model; a resumed run ignores it",
                      .synonyms = "pretrained-path pretrained-weights init-checkpoint"}});
  flags.add({.variable = options.trace,
             .flag = {.names = "--trace",
                      .help = "Record ten steps: trace.json and layers.csv in --save-dir, and a table of layers"}});
}

LOCKSTEP_INLINE void GivenFlags::add_diagnosis(FlagList& flags, Options& options) {
  flags.group("Diagnosis");
  flags.add(
      {.variable = options.doctor,
       .flag = {
           .names = "--doctor",
           .help =
               "Measure loader, model and communication for some seconds instead of training; recommend changes and "
               "predict the speed of more ranks"}});
  for (auto const& option : describe_link(options.link, options.alpha_us, options.beta_gb_s)) flags.add(option);
  flags.add({.variable = options.dry_run,
             .flag = {.names = "--dry-run",
                      .help = "Check flags, data and model with one batch, print what would be trained, and exit"}});
}

}}}  // namespace lockstep::app::detail
