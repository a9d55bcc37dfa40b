// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/index.hpp>
#include <lockstep/nn/autograd/loss.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/parallel/session.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Checks that at least one parameter gets a gradient from samples that count. Otherwise training would have no effect.
/// @returns false if it is unknown, because `loss`, of all ranks, has weight 0
/// @collective with DistributedDataParallel   @throws Error if no step so far has written a gradient
bool check_learning(parallel::AnySession& session, nn::ParameterLayout const& layout, nn::Loss<HostSpace> const& loss,
                    Index step);

/// Checks that the loss has a weight, as a step of weight 0 changes nothing.
/// @throws Error if an epoch, or a run, ends in which nothing had a weight and nothing learned before
void check_weight(bool learns, nn::Loss<HostSpace> const& epoch_loss, Index step);

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/trainer/detail/check_learning.ipp>
#endif
