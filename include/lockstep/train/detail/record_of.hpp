// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/parameter_layout.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/train/detail/loss_scale_of.hpp>
#include <lockstep/train/run_record.hpp>

namespace lockstep::inline LOCKSTEP_ABI::train::detail {

/// What is known of a fit before it begins.   @throws ConfigError when the loss is scaled, by numbers out of range
template <class Session, class Policy, class Loader, class FitOptions>
[[nodiscard]] RunRecord record_of(Policy const& policy, nn::ParameterLayout const& layout, Loader const& loader,
                                  FitOptions const& options) {
  RunRecord record;
  record.parallel = policy.name();
  record.engine = policy.engine();
  if constexpr (requires { policy.shards_each(), policy.all; }) record.reproducible = policy.all;
  if constexpr (requires { policy.shard_optimizer; }) record.shard_optimizer = policy.shard_optimizer;
  if constexpr (requires { policy.gradient_wire; }) record.gradient_wire = policy.gradient_wire;
  record.devices = policy.shards() / parallel::shards_of_device(policy);
  record.threads = policy.threads_each();
  record.world_size = policy.all_shards() / policy.shards();
  record.batch_size = loader.options().batch_size * parallel::shards_of_device(policy);
  record.effective_batch_size = record.batch_size * record.world_size * record.devices * options.accumulation;
  record.parameters = layout.parameters();
  if (scales_loss<Session>) options.loss_scaler.check(), record.loss_scale = options.loss_scaler.begin();
  return record;
}

}  // namespace lockstep::inline LOCKSTEP_ABI::train::detail
