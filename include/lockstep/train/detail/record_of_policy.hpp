// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/parallel/policy.hpp>
#include <lockstep/train/run_record.hpp>

namespace lockstep::inline LOCKSTEP_ABI::train::detail {

/// What a policy says of a run before it begins.
template <class Policy>
[[nodiscard]] RunRecord record_of_policy(Policy const& policy) {
  RunRecord record;
  record.parallel = policy.name();
  record.engine = policy.engine();
  if constexpr (requires { policy.shards_each(), policy.all; }) record.reproducible = policy.all;
  if constexpr (requires { policy.shard_optimizer; }) record.shard_optimizer = policy.shard_optimizer;
  if constexpr (requires { policy.gradient_wire; }) record.gradient_wire = policy.gradient_wire;
  record.devices = policy.shards() / parallel::shards_of_device(policy);
  record.threads = policy.threads_each();
  return record;
}

}  // namespace lockstep::inline LOCKSTEP_ABI::train::detail
