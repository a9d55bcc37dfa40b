// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

#include <lockstep/app/command.hpp>
#include <lockstep/app/detail/flag_list.hpp>
#include <lockstep/app/link_flags.hpp>
#include <lockstep/app/options.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/option_descriptor.hpp>
#include <lockstep/launch/environment/environment.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

/// Declares the flags that all trainers share, by groups of --help. Options of other floors have their descriptors
/// there. Flags whose default depends on other flags or on the machine are members here, empty unless given. All other
/// flags write into the options.
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

  /// Sets the options of another floor for which `options` has members.
  static void assign(OptionList const& target, Options const& options);

 private:
  static constexpr int max_ranks = launch::max_local_ranks, max_threads = 1024, max_shards = 1 << 16;
  static constexpr double max_samples = Index{1} << 32;

  void add_all(FlagList& flags, Options& options);
  void add_parallelism(FlagList& flags, Options& options, OptionList const& fit);
  void add_launch(FlagList& flags, Options& options, OptionList const& launch);
  void add_data(FlagList& flags, Options& options, OptionList const& loader);
  void add_optimization(FlagList& flags, Options& options, OptionList const& fit);
  void add_evaluation(FlagList& flags, Options& options, OptionList const& fit);
  void add_checkpoints(FlagList& flags, Options& options, OptionList const& fit);
  void add_diagnosis(FlagList& flags, Options& options);
};

}}}  // namespace lockstep::app::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/app/detail/given_flags.ipp>
#endif
