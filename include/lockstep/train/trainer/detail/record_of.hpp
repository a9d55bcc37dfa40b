// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/parallel/distributed_options.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/parallel/session.hpp>
#include <lockstep/train/logs/run_record.hpp>
#include <lockstep/train/trainer/fit_options.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Returns the record of a fit before it begins.
/// @throws ConfigError if the loss is scaled and loss_scaler is out of range
template <class Policy>
[[nodiscard, gnu::cold]] RunRecord record_of(parallel::AnySession const& session, Policy const& policy,
                                             nn::ParameterLayout const& layout, Index batch_size,
                                             FitOptions const& options) {
  RunRecord record;
  record.parallel = policy.name();
  record.engine = policy.engine();
  auto const settings = parallel::settings_of(policy);
  record.reproducible = settings.reproducible;
  static_cast<parallel::DistributedOptions&>(record) = settings;
  record.devices = policy.shards() / parallel::shards_of_device(policy);
  record.threads = policy.threads_each();
  record.world_size = policy.all_shards() / policy.shards();
  record.batch_size = batch_size * parallel::shards_of_device(policy);
  record.effective_batch_size = record.batch_size * record.world_size * record.devices * options.accumulation;
  record.parameters = layout.parameters();
  if (session.kind().scales_loss) {
    options.loss_scaler.check();
    record.loss_scale = options.loss_scaler.begin();
  }
  return record;
}

}}}  // namespace lockstep::train::detail
