// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/launch/environment/detail/launcher_values.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Returns "Slurm's srun started 4 tasks (SLURM_PROCID=2, SLURM_STEP_NUM_TASKS=4)".
std::string describe_values(LauncherValues const& values, Lookup variable);

/// Returns whether `outer` can have started `inner`, or both have equal values.
bool are_compatible(LauncherValues const& inner, LauncherValues const& outer, Lookup variable);

/// Rejects more ranks than GPUs on a node: an agent in every task instead of one per node. @throws ConfigError
void check_nested_tasks(LauncherValues const& inner, LauncherValues const& outer, Lookup variable);

/// Checks two launchers against each other. @throws ConfigError if they contradict each other
void check_launchers(LauncherValues const& inner, LauncherValues const& outer, Lookup variable);

}}}  // namespace lockstep::launch::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/environment/detail/check_launchers.ipp>
#endif
