// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/nn/autograd/loss.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/parallel/session.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Checks that at least one parameter gets a gradient from samples that count. Otherwise training would have no effect.
/// @returns false if it is unknown, because `loss`, of all ranks, has weight 0
/// @collective with DistributedDataParallel   @throws Error if no step so far has written a gradient
inline bool check_learning(parallel::AnySession& session, nn::ParameterLayout const& layout,
                           nn::Loss<HostSpace> const& loss, Index step) {
  if (loss.weight == 0) return false;
  std::size_t parameters = 0;
  for (auto const& entry : layout.entries()) parameters += entry.size > 0 && !entry.frozen;
  if (parameters == 0 || session.report().unused_parameters.size() < parameters) return true;
  throw Error("training: step " + std::to_string(step) +
              " gave no parameter a gradient, so nothing can be learned: the loss depends on none; no gradient passes "
              "an nn::Frozen block, your own loss must write to context.gradient(prediction), and your own layer must "
              "call context.on_backward; see docs/how-to/add-a-layer.md");
}

/// Checks that the loss has a weight, as a step of weight 0 changes nothing.
/// @throws Error if an epoch, or a run, ends in which nothing had a weight and nothing learned before
inline void check_weight(bool learns, nn::Loss<HostSpace> const& epoch_loss, Index step) {
  if (learns || epoch_loss.weight != 0) return;
  throw Error("training: up to step " + std::to_string(step) + " the losses of the epoch have the sum " +
              std::to_string(epoch_loss.sum) +
              " and the weight 0, so nothing was learned; a loss returns both: the sum over the batch, and its "
              "weight, the number of samples or elements. If all labels are ignored, or have classes of weight "
              "0, the weight is 0; see docs/how-to/add-a-layer.md");
}

}}}  // namespace lockstep::train::detail
