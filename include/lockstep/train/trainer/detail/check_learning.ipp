// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/train/trainer/detail/check_learning.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_INLINE bool check_learning(parallel::AnySession& session, nn::ParameterLayout const& layout,
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

LOCKSTEP_INLINE void check_weight(bool learns, nn::Loss<HostSpace> const& epoch_loss, Index step) {
  if (learns || epoch_loss.weight != 0) return;
  throw Error("training: up to step " + std::to_string(step) + " the losses of the epoch have the sum " +
              shortest(epoch_loss.sum) +
              " and the weight 0, so nothing was learned; a loss returns both: the sum over the batch, and its "
              "weight, the number of samples or elements. If all labels are ignored, or have classes of weight "
              "0, the weight is 0; see docs/how-to/add-a-layer.md");
}

}}}  // namespace lockstep::train::detail
