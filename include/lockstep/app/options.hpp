// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/app/backend.hpp>
#include <lockstep/app/parallel.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/data/loader/data_loader_options.hpp>
#include <lockstep/launch/engine.hpp>
#include <lockstep/launch/options.hpp>
#include <lockstep/optim/learning_rate_scaling.hpp>
#include <lockstep/optim/schedule.hpp>
#include <lockstep/parallel/distributed_options.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/scaling/fabric.hpp>
#include <lockstep/train/trainer/fit_options.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {

/// Values of the flags that all trainers share. The initial values are the defaults. An example derives from it to
/// change defaults and to add flags, with a member `void flags(app::Command&)`.
///
/// Flags of options that have no member here write into `fit_options`, `loader_options` and `launch_options`. A member
/// such as `patience` replaces the option `fit_options.patience`.
struct Options : parallel::DistributedOptions {
  std::string program;  ///< the example's name, as in run.json

  Parallel parallel = Parallel::single;  ///< policy
  Backend backend = Backend::host;       ///< where the model runs
  std::vector<int> gpus;  ///< assigned in turn to devices, or to the ranks of a host; with Backend::cuda at least one
  int nproc = 1;          ///< processes to start
  /// Engine of ddp: nccl on GPUs; otherwise, for ranks of a launcher, process or mpi.
  launch::Engine engine = launch::Engine::process;
  std::string master_address;  ///< address of the first rank's host, for several hosts; empty: from the launcher
  int master_port = 0;         ///< port on that host; 0: from the launcher
  double join_timeout = 60;    ///< seconds within which ranks of another launcher must connect
  double stall_timeout = 600;  ///< seconds that a rank waits for a live rank; 0: no limit
  double host_timeout = 15;    ///< seconds without contact after which a host's ranks count as lost
  int max_restarts = 0;        ///< restarts after a failure, for ranks that this program starts
  int ranks = 1;               ///< of the world: processes, or threads for ddp over devices
  int devices = 1;             ///< replicas of each rank
  int threads = 1;             ///< per device
  int cores = 1;               ///< shared by the ranks of this host

  std::string data;                ///< empty: the example's own data
  std::string eval_data;           ///< empty: the test part of the data
  int epochs = 3;                  ///< 0: as many as max_steps needs
  std::optional<Index> max_steps;  ///< largest number of optimizer steps; unset: no limit
  Index eval_every = 0;            ///< optimizer steps; 0: after each epoch
  Index batch_size = 32;           ///< per rank or device
  int grad_accum_steps = 1;        ///< micro-steps of an optimizer step

  double learning_rate = 1e-3;                                               ///< before lr_scaling and schedule
  optim::LearningRateScaling lr_scaling = optim::LearningRateScaling::none;  ///< rule by effective batch / base batch
  optim::Schedule::Kind lr_schedule = optim::Schedule::Kind::cosine;         ///< after the warm-up
  std::optional<Index> base_batch_size;                                      ///< unset: the batch of one rank
  double lr_min_factor = 0;         ///< final learning-rate factor of a cosine or linear schedule
  double warmup_epochs = 0;         ///< may be a fraction; used if warmup_steps is 0
  Index warmup_steps = 0;           ///< optimizer steps; 0: warmup_epochs applies
  double weight_decay = 0.01;       ///< of AdamW
  std::optional<double> clip_norm;  ///< largest norm of the mean gradient; unset or 0: no clipping

  int num_workers = 1;                                  ///< loader threads of a rank; 0: the training thread loads
  int prefetch = 2;                                     ///< micro-steps that a rank loads in advance
  data::OnFailure on_failure = data::OnFailure::raise;  ///< treatment of a sample that cannot be read
  std::optional<double> bucket_cap_mb;                  ///< unset: measured
  Index check_replicas_every = 0;                       ///< optimizer steps; 0: never
  bool autotune_gemm = false;                           ///< on GPUs: choose the fastest GEMM algorithms at the start
  Index shapes_ahead = 16;  ///< on GPUs: shapes of batches that are recorded before the first step
  /// On GPUs: kernels of attention in 16 bits.
  parallel::AttentionKernels attention_kernels = parallel::AttentionKernels::own;
  int reproducible = 0;                          ///< shards per micro-step for any ranks and devices; 0: one per device
  std::uint64_t seed = 1;                        ///< of sample order, augmentation, parameters and dropout
  std::string save_dir;                          ///< empty: no output
  bool trace = false;                            ///< record some steps, for save_dir
  Index checkpoint_every = 0;                    ///< optimizer steps; 0: only after the last step
  Index keep_checkpoints = 0;                    ///< number of newest ones; 0: all
  std::string resume = never;                    ///< never, automatic, or the path of a checkpoint
  static constexpr char const* never = "never";  ///< value of `resume`: no checkpoint
  static constexpr char const* automatic = "auto";  ///< value of `resume`: the newest checkpoint in save_dir, if any
  bool doctor = false;                              ///< measure parts of a run instead of training
  scaling::Link link = scaling::Link::automatic;    ///< between ranks, in the doctor's predictions
  std::optional<double> alpha_us;                   ///< latency of that link in microseconds; unset: from its kind
  std::optional<double> beta_gb_s;                  ///< bandwidth of that link in GB/s; unset: from its kind
  std::string init_from;                            ///< saved initial parameters; empty: from the seed
  std::string best_by;          ///< "loss" or a metric, to keep the parameters of the best evaluation; empty: keep none
  Index patience = 0;           ///< evaluations without improvement that stop the run; 0: never
  Index plateau = 0;            ///< evaluations without improvement that lower the learning rate; 0: never
  double plateau_factor = 0.1;  ///< learning-rate factor on a plateau

  bool evaluate = false;  ///< evaluate the parameters of init_from instead of training
  bool dry_run = false;   ///< check all that can be checked, without training or output

  FitOptions fit_options = {};                  ///< options of the fit without a member above
  data::DataLoaderOptions loader_options = {};  ///< options of loaders without a member above
  launch::Options launch_options = {};          ///< options of the launch without a member above

  std::vector<std::string> command_line;                      ///< arguments, including those of a configuration file
  std::vector<std::pair<std::string, std::string>> settings;  ///< values of all flags, by name
  std::vector<std::string> text_flags;                        ///< flags of strings, by name
  std::vector<std::string> given;                             ///< flags in the arguments or the configuration file
  /// Values of the program's own flags, except strings, by name: equal on all ranks of a run.
  std::vector<std::pair<std::string, std::string>> equal_on_all_ranks;
  std::vector<std::string> warnings;  ///< notes on valid options, printed at the start
  /// `--name=value` lines of --seed and of the program's own flags, saved in checkpoints for --evaluate.
  std::string saved_flags;

  /// Returns the number of devices of the world.
  [[nodiscard]] Index all_devices() const noexcept { return Index{ranks} * devices; }
  /// Returns the number of loader batches in one micro-step of the world.
  [[nodiscard]] Index shards() const noexcept { return reproducible > 0 ? reproducible : all_devices(); }
  /// Returns the samples of each of these batches.
  [[nodiscard]] Index shard_size() const noexcept { return batch_size * all_devices() / shards(); }
  /// Returns the samples of one micro-step of the world: the `global_batch` of a sampler.
  [[nodiscard]] Index global_batch() const noexcept { return shard_size() * shards(); }
  /// Returns the samples of one optimizer step of the world.
  [[nodiscard]] Index effective_batch_size() const noexcept { return batch_size * all_devices() * grad_accum_steps; }
  /// Returns the learning rate after --lr-scaling.
  [[nodiscard]] double scaled_learning_rate() const noexcept {
    return learning_rate * optim::factor(lr_scaling, effective_batch_size(), base_batch_size.value_or(batch_size));
  }
};

}}}  // namespace lockstep::app
