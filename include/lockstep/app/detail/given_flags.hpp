// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include <lockstep/app/command.hpp>
#include <lockstep/app/link_flags.hpp>
#include <lockstep/app/options.hpp>
#include <lockstep/data/loader/data_loader_options.hpp>
#include <lockstep/launch/environment/environment.hpp>
#include <lockstep/parallel/wire_format.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

/// Declares the flags that all trainers share, by groups of --help. Flags whose default depends on other flags or on
/// the machine are members here, empty unless given. All other flags write into the options.
struct GivenFlags {
  static constexpr int automatic = 0;  ///< value of nproc: number of usable GPUs, or of cores
  static constexpr int max_prefetch = 1024;

  std::optional<Parallel> parallel;
  std::optional<Backend> backend;
  std::optional<launch::Engine> engine;
  std::optional<int> devices, nproc, threads, local_rank, reproducible, prefetch_factor, epochs;
  std::string gpu_ids;
  std::optional<Index> batch_size, global_batch_size;

  /// Declares all flags. Command, options and this object must outlive `Command::parse`.
  void add_to(Command& command, Options& options);

 private:
  static constexpr int max_ranks = launch::max_local_ranks, max_threads = 1024, max_shards = 1 << 16;
  static constexpr Index max_samples = Index{1} << 32, unlimited = std::numeric_limits<Index>::max();
  static constexpr double longest_wait = 3600, unbounded = std::numeric_limits<double>::max();

  void add_parallelism(Command& command, Options& options);

  void add_launch(Command& command, Options& options);

  void add_data(Command& command, Options& options);

  void add_optimization(Command& command, Options& options);

  void add_evaluation(Command& command, Options& options);

  void add_checkpoints(Command& command, Options& options);

  void add_diagnosis(Command& command, Options& options);
};

}}}  // namespace lockstep::app::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/app/detail/given_flags.ipp>
#endif
