// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/train/checkpoint/checkpoint.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// State of a trainer that does not depend on its types and is not in its session. Functions that save, restore or
/// inspect a trainer, such as train::save_state, read and change it.
struct TrainingState {
  std::uint64_t seed = 0;          ///< key of all random operations
  TrainerSteps done = {};          ///< its steps include steps that were skipped since the loss scale was set
  double weight = 0;               ///< of the last step's loss over all shards
  bool has_learned = false;        ///< whether a step of a manual loop has given a parameter a gradient
  bool was_loaded = false;         ///< whether train::load_state has restored it: earlier steps were made elsewhere
  bool averages_in_place = false;  ///< whether an evaluation by averages has replaced the parameters

  /// Checks that the parameters are in place before the operation `what`.
  /// @throws ConfigError within an evaluation by averages, which then replace the parameters
  void expect_parameters(char const* what) const {
    if (averages_in_place)
      throw ConfigError(
          std::string(what) +
          ": an evaluation with averaged parameters is running; do it in an observer's step, or after the fit");
  }
};

}}}  // namespace lockstep::train
