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
#include <lockstep/data/data_loader_options.hpp>
#include <lockstep/launch/engine.hpp>
#include <lockstep/optim/learning_rate_scaling.hpp>
#include <lockstep/optim/schedule.hpp>
#include <lockstep/parallel/wire_format.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {

/// What the flags that all trainers share say: plain data. The initial values are the defaults; an example changes
/// them, and adds flags of its own, by deriving from this and writing `void flags(app::Command&)`.
struct Options {
  std::string program;  ///< the example's name, as in run.json

  Parallel parallel = Parallel::single;
  Backend backend = Backend::host;
  std::vector<int> gpus;  ///< for devices, or the ranks of a host, in turn; with Backend::cuda at least one
  int nproc = 1;          ///< processes to start
  /// With ddp: nccl on GPUs; else what joins ranks that a launcher has started, process or mpi.
  launch::Engine engine = launch::Engine::process;
  std::string master_address;  ///< of several hosts: the first rank's; empty: as the launcher says
  int master_port = 0;         ///< of it; 0: as the launcher says
  double join_timeout = 60;    ///< seconds that ranks of another launcher get to find each other
  double stall_timeout = 600;  ///< seconds that a rank waits for one that is alive; 0: as long as it takes
  double host_timeout = 15;    ///< seconds that a host may be out of reach before its ranks are lost
  int max_restarts = 0;        ///< of those that this program starts, after a failure
  int ranks = 1;               ///< of the world: processes, or threads with ddp over devices
  int devices = 1;             ///< replicas inside each rank
  int threads = 1;             ///< for each device
  int cores = 1;               ///< that the ranks of this host share

  std::string data;       ///< empty: the example's own
  std::string eval_data;  ///< empty: the data's own test part
  int epochs = 3;         ///< 0: as many as max_steps takes
  std::optional<Index> max_steps;
  Index eval_every = 0;   ///< optimizer steps; 0: after each epoch
  Index batch_size = 32;  ///< per rank or device
  int grad_accum_steps = 1;

  double learning_rate = 1e-3;
  optim::LearningRateScaling lr_scaling = optim::LearningRateScaling::none;
  optim::Schedule::Kind lr_schedule = optim::Schedule::Kind::cosine;
  std::optional<Index> base_batch_size;  ///< unset: one rank's
  double lr_min_factor = 0;              ///< of a cosine or a line: where it ends
  double warmup_epochs = 0;
  Index warmup_steps = 0;  ///< optimizer steps; 0: warmup_epochs
  double weight_decay = 0.01;
  std::optional<double> clip_norm;

  int num_workers = 1;
  int prefetch = 2;
  data::OnFailure on_failure = data::OnFailure::raise;  ///< what becomes of a sample that cannot be read
  std::optional<double> bucket_cap_mb;                  ///< unset: measured
  Index check_replicas_every = 0;                       ///< optimizer steps; 0 never
  bool shard_optimizer = false;  ///< with ddp: each rank keeps its part of the optimizer's moments only
  bool timed_products = false;   ///< on GPUs: products take the algorithm that was fastest after the first step
  /// With ddp: what gradients are sent as.
  parallel::WireFormat gradient_wire = parallel::WireFormat::float32;
  int reproducible = 0;  ///< shards of a micro-step, whatever the ranks and devices; 0: one for each
  std::uint64_t seed = 1;
  std::string save_dir;        ///< empty: nothing is written
  bool trace = false;          ///< some steps are recorded, for save_dir
  Index checkpoint_every = 0;  ///< optimizer steps; 0: only after the last
  Index keep_checkpoints = 0;  ///< the newest; 0: all
  std::string resume = never;  ///< never, automatic, or the path of a checkpoint
  static constexpr char const *never = "never", *automatic = "auto";
  bool doctor = false;          ///< measures pieces of a run instead of training
  std::string init_from;        ///< saved parameters to start from; empty: the seed's
  std::string best_by;          ///< of which evaluation parameters are kept: "loss" or a metric; empty: of none
  Index patience = 0;           ///< evaluations in a row, none the best, that end the run; 0 never
  Index plateau = 0;            ///< evaluations in a row, none the best, after which the learning rate falls; 0 never
  double plateau_factor = 0.1;  ///< what it is multiplied by then

  bool evaluate = false;  ///< evaluates init_from's parameters instead of training
  bool dry_run = false;   ///< checks all that can be checked, trains and writes nothing

  std::vector<std::string> command_line;                      ///< the command line, with what a configuration file gave
  std::vector<std::pair<std::string, std::string>> settings;  ///< what all flags say, by name
  std::vector<std::string> given;                             ///< the flags that the command line, or the file, has
  /// What the program's own flags of numbers and words say, by name: alike on all ranks of a run.
  std::vector<std::pair<std::string, std::string>> alike;
  std::vector<std::string> warnings;  ///< what is legal and yet deserves a word at the start

  /// Of the world.
  [[nodiscard]] Index all_devices() const noexcept { return Index{ranks} * devices; }
  /// Batches of a loader in one micro-step of the world.
  [[nodiscard]] Index shards() const noexcept { return reproducible > 0 ? reproducible : all_devices(); }
  /// Samples in each of them.
  [[nodiscard]] Index shard_size() const noexcept { return batch_size * all_devices() / shards(); }
  /// Samples in one micro-step of the world: the `global_batch` of a sampler.
  [[nodiscard]] Index global_batch() const noexcept { return shard_size() * shards(); }
  /// Samples in one optimizer step of the world.
  [[nodiscard]] Index effective_batch_size() const noexcept { return batch_size * all_devices() * grad_accum_steps; }
  /// After --lr-scaling.
  [[nodiscard]] double scaled_learning_rate() const noexcept {
    return learning_rate * optim::factor(lr_scaling, effective_batch_size(), base_batch_size.value_or(batch_size));
  }
};

}}}  // namespace lockstep::app
