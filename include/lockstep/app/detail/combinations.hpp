// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <lockstep/app/backend.hpp>
#include <lockstep/app/command.hpp>
#include <lockstep/app/options.hpp>
#include <lockstep/app/parallel.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/launch/engine.hpp>
#include <lockstep/optim/schedule.hpp>
#include <lockstep/parallel/wire_format.hpp>
#include <lockstep/scaling/fabric.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

/// Rejects invalid combinations of flags, after dependent options are known. Flags that were given are rejected.
/// Defaults that do not apply are reset.
class Combinations {
 public:
  Combinations(Options& options, Command const& command, Gpus const& gpus)
      : options_(options), command_(command), gpus_(gpus) {}

  /// @throws ConfigError with a sentence about the combination
  void check();

 private:
  /// Rejects or resets a flag; `none` is its value without effect.
  template <class Value, class Owner>
  void refuse(char const* flag, Value Owner::*member, std::type_identity_t<Value> none, std::string const& sentence) {
    if (options_.*member == none) return;
    if (command_.given(flag)) throw ConfigError(sentence);
    options_.*member = std::move(none);
  }

  void check_sharding();

  void check_gradient_wire();

  void check_bucket_cap();

  void check_replica_checks();

  void note_wide_dp();

  void check_autotune_gemm();

  void check_shapes_ahead();

  void check_attention_kernels();

  void check_min_factor();

  void check_best();

  void check_data();
  void check_saving();

  void check_doctor();

  void check_evaluate();

  /// Rejects flags that only affect training or its output, for a flag that replaces training.
  void refuse_training_flags(char const* instead, char const* what);
  template <class Value, class Owner>
  void refuse_flag(char const* instead, char const* flag, Value Owner::*member, std::type_identity_t<Value> none,
                   char const* what) {
    refuse(flag, member, std::move(none), std::string(instead) + " with " + flag + ": " + what + "; leave out either");
  }

  Options& options_;
  Command const& command_;
  Gpus const& gpus_;
};

}}}  // namespace lockstep::app::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/app/detail/combinations.ipp>
#endif
