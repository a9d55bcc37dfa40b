// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <optional>
#include <string>

#include <lockstep/app/backend.hpp>
#include <lockstep/app/command.hpp>
#include <lockstep/app/detail/check_place.hpp>
#include <lockstep/app/detail/combinations.hpp>
#include <lockstep/app/detail/given_flags.hpp>
#include <lockstep/app/detail/hints.hpp>
#include <lockstep/app/options.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/launch/environment/environment.hpp>
#include <lockstep/parallel/policy/reproducible.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {

/// Flags that all trainers share. Added to a command, they write into `options`. `resolve` then computes values that
/// depend on several flags or on the machine, and rejects invalid combinations.
class CommonFlags {
 public:
  /// Adds the flags. Both arguments must outlive this object.
  CommonFlags(Command& command, Options& options, detail::Mpi mpi = detail::mpi_of_program);
  CommonFlags(CommonFlags const&) = delete;
  CommonFlags& operator=(CommonFlags const&) = delete;

  /// Computes dependent options. Call it once, after `Command::parse`.
  /// @param cores processors that the ranks of this host may use together
  /// @param place environment of this process, as set by a launcher
  /// @param gpus GPUs of the machine
  /// @throws ConfigError with a sentence about the combination
  void resolve(int cores, launch::Environment const& place = {}, Gpus const& gpus = {});
  /// Implements the first part of `resolve`, whose result may differ between hosts.
  void resolve_place(launch::Environment const& place, Gpus const& gpus);
  /// Implements the second part of `resolve`.
  void resolve_rest(int cores, launch::Environment const& place, Gpus const& gpus);

 private:
  void resolve_backend(Gpus const& gpus);

  void resolve_ranks(int cores, launch::Environment const& place);

  /// Chooses NCCL by default if every rank of this program is a process with its own GPU. With threads, freeing memory
  /// waits for all GPUs of the process, and thus for collectives that the thread has yet to join. Another launcher may
  /// show each rank only one GPU: its ranks are assumed to have one each.
  void resolve_engine(launch::Environment const& place, Gpus const& gpus);

  void resolve_batch_size();
  static void check_multiple(char const* flag, Index value, Index unit, std::string const& because);

  void resolve_prefetch();

  void resolve_epochs();

  /// Rejects options that would make results depend on the number of ranks or devices.
  void resolve_reproducible();

  void resolve_learning_rate();

  /// Returns the default of --devices for dp: all GPUs, or 2 on the CPU.
  [[nodiscard]] int default_devices() const noexcept;

  Options& options_;
  Command const& command_;
  detail::Mpi mpi_;
  detail::GivenFlags given_;
};

}}}  // namespace lockstep::app

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/app/common_flags.ipp>
#endif
