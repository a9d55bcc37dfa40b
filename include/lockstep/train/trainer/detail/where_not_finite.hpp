// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/memory/space.hpp>
#include <lockstep/nn/autograd/loss.hpp>
#include <lockstep/parallel/session.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Returns the ranks, or the devices of a single rank, whose loss is not finite, as " on rank 1", and the first of
/// these ranks. The text is empty if all are affected.
/// @collective with DistributedDataParallel
[[nodiscard]] std::pair<std::string, int> where_not_finite(parallel::AnySession& session, int rank, int ranks,
                                                           int devices);

/// Checks a gradient that is to be clipped. A norm that is not finite skips the update. A loss scale then shrinks, but
/// without one the step has no effect.
/// @throws Error if the gradient of a step is not finite and its loss is
void check_gradient(parallel::AnySession& session, nn::Loss<HostSpace> const& loss, Index step, double clip_norm);

/// Checks the loss of a step, and its gradient if it is clipped. If the loss is not finite, the first affected rank
/// calls `find_sample`, if there is one, which returns a sentence about a sample that is not finite, or nothing.
/// @throws Error if the loss or the gradient is not finite
/// @collective with DistributedDataParallel
void check_finite(parallel::AnySession& session, nn::Loss<HostSpace> const& loss, Index step, double clip_norm,
                  int rank, int ranks, int devices, std::function<std::string()> const& find_sample = {});

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/trainer/detail/where_not_finite.ipp>
#endif
