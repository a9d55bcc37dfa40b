// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/parallel/policy.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Checks that each rank has the gradients of all parameters after a step, without a scale. `what` reads them.
/// @throws ConfigError if ranks share the optimizer (`shard_optimizer`)
template <class Trainer>
void expect_own_gradients(Trainer const& trainer, char const* what) {
  static_assert(!Trainer::Session::DeviceReplica::scales_loss,
                "Lockstep: train::gradient and train::gradient_norms are for models in float or nn::InBfloat16: "
                "nn::InFloat16 gradients have a scale that changes with the step");
  if (parallel::settings_of(trainer.policy()).shard_optimizer && trainer.ranks() > 1)
    throw ConfigError(std::string(what) +
                      ": with shard_optimizer each rank has only its part of the gradients; leave it out, or let "
                      "clip_norm measure the global norm");
}

}}}  // namespace lockstep::train::detail
