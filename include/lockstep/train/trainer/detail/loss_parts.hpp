// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>
#include <vector>

#include <lockstep/parallel/session.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Returns the means of the named parts of the last step's loss, over all devices and ranks; NaN without weight.
/// @param devices number of this process's devices
/// @param known names of which there were parts before the session, equal on all ranks
/// @collective with DistributedDataParallel
/// @throws ConfigError on all ranks if no rank ever had a part of some name that is not known
[[nodiscard]] std::vector<std::pair<std::string, double>> mean_loss_parts(parallel::AnySession& session,
                                                                          std::vector<std::string> const& names,
                                                                          int devices,
                                                                          std::vector<std::string> const& known = {});

/// Adds names that a list does not have yet.
void add_names(std::vector<std::string> const& names, std::vector<std::string>& list);

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/trainer/detail/loss_parts.ipp>
#endif
