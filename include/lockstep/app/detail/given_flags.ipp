// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/app/detail/given_flags.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

LOCKSTEP_INLINE void GivenFlags::add_to(Command& command, Options& options) {
  add_parallelism(command, options);
  add_launch(command, options);
  add_data(command, options);
  add_optimization(command, options);
  add_evaluation(command, options);
  add_checkpoints(command, options);
  add_diagnosis(command, options);
}

LOCKSTEP_INLINE void GivenFlags::add_parallelism(Command& command, Options& options) {
  command.group("Parallelism");
  command.add("--parallel,--multi-gpu", parallel,
              {{"single", Parallel::single}, {"dp", Parallel::dp}, {"ddp", Parallel::ddp}},
              "Parallel policy: one device, several devices in one process, or one device per rank; default: ddp for "
              "several ranks, dp for several devices, otherwise single");
  command.add("--backend", backend, {{"host", Backend::host}, {"cuda", Backend::cuda}},
              "Processor that trains the model: CPU (host) or GPU (cuda); default: cuda if the program was built "
              "with CUDA and a GPU is available");
  command.add("--devices", devices, 1, max_ranks, "Devices of this process; with ddp, ranks run as threads");
  command.add(
      "--gpu-ids", "GPU numbers, separated by commas: one device for each; default: all GPUs",
      [this, &options](auto const& name, auto const& text) {
        gpu_ids = text;
        options.gpus = parse_numbers<int>(name, text, 0, max_ranks - 1);
      },
      Takes::list);
  command.add("--threads", threads, 1, max_threads, "CPU threads per device; default: cores / devices");
  command.add("--engine", engine,
              {{"process", launch::Engine::process}, {"mpi", launch::Engine::mpi}, {"nccl", launch::Engine::nccl}},
              "Communication between ranks: nccl for GPUs, process for one host, mpi for CPUs of several hosts; "
              "default: nccl if each rank is a process with a GPU, otherwise process");
  command.add("--bucket-cap-mb", options.bucket_cap_mb, 0.001, 1e6,
              "Gradient bucket size in MiB, with ddp; default: measured at the start");
  command.add("--gradient-wire", options.gradient_wire,
              {{"fp32", parallel::WireFormat::float32},
               {"bf16", parallel::WireFormat::bfloat16},
               {"fp16", parallel::WireFormat::float16}},
              "Number format in which ddp sends gradients; fp16 requires --precision fp16");
  command.add("--shard-optimizer", options.shard_optimizer,
              "Keep 1/n of the optimizer state on each of n ranks, with ddp on the CPU; results are bit-identical");
  command.add("--reproducible", reproducible, 1, max_shards,
              "Number of shards per batch of all ranks, a power of two: results are bit-identical for any number of "
              "ranks or devices that divides it");
  command.add("--check-replicas-every", options.check_replicas_every, 0, unlimited,
              "Steps between comparisons of the replicas' parameters, with dp and ddp; 0: never");
  command.add("--timed-products", options.timed_products,
              "Choose the fastest algorithm of each matrix product after the first step, on GPUs; results then "
              "differ from run to run");
}

LOCKSTEP_INLINE void GivenFlags::add_launch(Command& command, Options& options) {
  command.group("Launch");
  command.add("--nproc", "Processes to start, each a rank; auto: one per GPU, or per core on the CPU (default 1)",
              [this](auto const& name, auto const& text) {
                nproc = text == "auto" ? automatic : parse_number<int>(name, text, 1, max_ranks, ", or auto");
              });
  command.add("--max-restarts", options.max_restarts, 0, 1000, "Restarts of all ranks after a failure, with --nproc");
  command.add("--master-addr", options.master_address,
              "Host of rank 0, for ranks on several hosts; default: MASTER_ADDR, or from Slurm");
  command.add("--master-port", options.master_port, 0, 65535,
              "Free TCP port of that host; default: MASTER_PORT, or derived from the job's name");
  command.add("--join-timeout", options.join_timeout, 1, longest_wait,
              "Seconds until all ranks must have joined, if another program launches them");
  command.add("--stall-timeout", options.stall_timeout, 0, unbounded,
              "Seconds that a rank waits for another rank that is alive; 0: no limit");
  command.add("--host-timeout", options.host_timeout, 2, longest_wait,
              "Seconds without contact after which another host's ranks count as lost");
  command.add("--local-rank,--local_rank", local_rank, 0, max_ranks,
              "Rank on this host, as python -m torch.distributed.launch passes it; compared with LOCAL_RANK");
}

LOCKSTEP_INLINE void GivenFlags::add_data(Command& command, Options& options) {
  command.group("Data");
  command.add("--data", options.data, "Training data: a file or folder in the trainer's format");
  command.add("--eval-data", options.eval_data,
              "Evaluation data; default: the test part of --data, or a tenth of the training data");
  command.add("--num-workers", options.num_workers, 0, 256,
              "Data loader threads per rank; 0: the training thread loads batches");
  command.add("--prefetch", options.prefetch, 0, max_prefetch, "Batches that each rank loads in advance");
  command.add("--prefetch-factor", prefetch_factor, 1, max_prefetch,
              "Batches loaded in advance per data loader thread, instead of --prefetch");
  command.add(
      "--on-failure", options.on_failure,
      {{"raise", data::OnFailure::raise}, {"skip", data::OnFailure::skip}, {"substitute", data::OnFailure::substitute}},
      "Treatment of a sample that cannot be read: an error, a batch without it, or another in its place");
  command.add("--seed", options.seed, 0, std::numeric_limits<std::uint64_t>::max(),
              "Seed of the sample order, augmentation, initial parameters and dropout");
}

LOCKSTEP_INLINE void GivenFlags::add_optimization(Command& command, Options& options) {
  command.group("Optimization");
  command.add(
      "--epochs", epochs, 1, 1000000,
      "Passes over the training data; default " + shortest(options.epochs) + ", or as many as --max-steps needs");
  command.add("--max-steps", options.max_steps, 1, unlimited, "Maximum number of optimizer steps");
  command.add("--batch-size", batch_size, 1, max_samples,
              "Samples per batch of each rank or device; default " + shortest(options.batch_size));
  command.add("--global-batch-size", global_batch_size, 1, max_samples,
              "Samples per optimizer step of all ranks, instead of --batch-size");
  command.add("--grad-accum-steps", options.grad_accum_steps, 1, 1 << 20,
              "Batches per optimizer step (gradient accumulation)");
  command.add("--lr,--learning-rate", options.learning_rate, 0, unbounded, "Learning rate");
  command.add("--lr-schedule", options.lr_schedule,
              {{"constant", optim::Schedule::Kind::constant},
               {"cosine", optim::Schedule::Kind::cosine},
               {"linear", optim::Schedule::Kind::linear},
               {"inverse-sqrt", optim::Schedule::Kind::inverse_square_root}},
              "Learning-rate schedule after the warm-up");
  command.add("--lr-min-factor", options.lr_min_factor, 0, 1,
              "Final learning rate as a fraction of --lr, with the cosine and linear schedules");
  command.add("--lr-scaling", options.lr_scaling,
              {{"none", optim::LearningRateScaling::none},
               {"linear", optim::LearningRateScaling::linear},
               {"sqrt", optim::LearningRateScaling::sqrt}},
              "Scaling of the learning rate with effective batch / base batch");
  command.add("--base-batch-size", options.base_batch_size, 1, max_samples,
              "Base batch of --lr-scaling; default: the batch of one rank");
  command.add("--warmup-epochs", options.warmup_epochs, 0, 1e6, "Warm-up of the learning rate from 0, in epochs");
  command.add("--warmup-steps", options.warmup_steps, 0, unlimited,
              "Warm-up in optimizer steps; 0: --warmup-epochs applies");
  command.add("--weight-decay", options.weight_decay, 0, unbounded, "AdamW weight-decay coefficient");
  command.add("--clip-norm", options.clip_norm, 0, unbounded, "Maximum norm of the gradient; 0: no clipping");
}

LOCKSTEP_INLINE void GivenFlags::add_evaluation(Command& command, Options& options) {
  command.group("Evaluation and early stopping");
  command.add("--eval-every", options.eval_every, 0, unlimited,
              "Steps between evaluations; 0: one evaluation after each epoch");
  command.add("--best-by", options.best_by,
              "Measure of the best evaluation, whose parameters are kept in checkpoints/best.safetensors: loss, a "
              "metric's name, or none");
  command.add("--patience", options.patience, 0, unlimited,
              "Consecutive evaluations without improvement after which training stops; 0: never");
  command.add("--lr-plateau", options.plateau, 0, unlimited,
              "Consecutive evaluations without improvement after which the learning rate falls; 0: never");
  command.add("--lr-plateau-factor", options.plateau_factor, 0, 0.999,
              "Factor applied to the learning rate on a plateau");
  command.add("--evaluate", options.evaluate, "Evaluate the parameters of --init-from once instead of training");
}

LOCKSTEP_INLINE void GivenFlags::add_checkpoints(Command& command, Options& options) {
  command.group("Checkpoints and logs");
  command.add("--save-dir", options.save_dir,
              "Output folder for run.json, metrics.jsonl, metrics.csv and checkpoints/; default: no output");
  command.add("--checkpoint-every", options.checkpoint_every, 0, unlimited,
              "Steps between checkpoints; 0: only after the last step");
  command.add("--keep-checkpoints", options.keep_checkpoints, 0, unlimited,
              "Number of newest checkpoints to keep, in addition to best.safetensors; 0: all");
  command.add("--resume", options.resume,
              "Checkpoint to resume from: never, auto (the newest one in --save-dir, if any), or a path");
  command.add("--init-from", options.init_from,
              "Initial parameters: a .safetensors file of this model; a resumed run ignores it");
  command.add("--trace", options.trace,
              "Record ten steps: trace.json and layers.csv in --save-dir, and a table of layers");
}

LOCKSTEP_INLINE void GivenFlags::add_diagnosis(Command& command, Options& options) {
  command.group("Diagnosis");
  command.add("--doctor", options.doctor,
              "Measure loader, model and communication for some seconds instead of training; recommend changes and "
              "predict the speed of more ranks");
  add_link(command, options.link, options.alpha_us, options.beta_gb_s);
  command.add("--dry-run", options.dry_run,
              "Check flags, data and model with one batch, print what would be trained, and exit");
}

}}}  // namespace lockstep::app::detail
