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

/// Returns the ranks, or the devices of a single rank, whose loss is not finite, as " on rank 1", and whether this rank
/// is one of them. The text is empty if all are affected. If none is, all count as affected.
/// @collective with DistributedDataParallel
[[nodiscard]] std::pair<std::string, bool> where_not_finite(parallel::AnySession& session, int rank, int ranks,
                                                            int devices);

/// Returns the string of the first rank whose string is not empty, on all ranks.
/// @collective with DistributedDataParallel
[[nodiscard]] std::string first_found(parallel::AnySession& session, std::string found, int rank, int ranks);

/// Checks a gradient that is to be clipped. A norm that is not finite skips the update. A loss scale then shrinks, but
/// without one the step has no effect.
/// @throws Error if the gradient of a step is not finite and its loss is
void check_gradient(parallel::AnySession& session, nn::Loss<HostSpace> const& loss, Index step, double clip_norm);

/// Checks the loss of a step, and its gradient if it is clipped. If the loss is not finite, each affected rank calls
/// `find_sample`, if there is one, which returns a sentence about a sample that is not finite, or nothing. A layer such
/// as nn::all_gather makes the loss of all ranks NaN by a sample of one.
/// @throws Error if the loss or the gradient is not finite
/// @collective with DistributedDataParallel
void check_finite(parallel::AnySession& session, nn::Loss<HostSpace> const& loss, Index step, double clip_norm,
                  int rank, int ranks, int devices, std::function<std::string()> const& find_sample = {});

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/trainer/detail/where_not_finite.ipp>
#endif
