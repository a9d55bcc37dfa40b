// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/environment/detail/launcher_values.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_COLD_INLINE bool in_slurm_step(Lookup variable) {
  constexpr std::string_view min_reserved = "4294967280";  // steps of the batch script, the shell, the container
  auto const* const step = variable("SLURM_STEP_ID");
  if (!step || !variable("SLURM_STEP_NUM_TASKS") || !variable("SLURM_PROCID")) return false;
  std::string_view const text = step;
  return text.size() < min_reserved.size() || (text.size() == min_reserved.size() && text < min_reserved);
}

LOCKSTEP_COLD_INLINE bool is_present(LauncherVariables const& names, Lookup variable) {
  if (names.launcher == Launcher::slurm) return in_slurm_step(variable);
  if (!variable(names.rank)) {
    if (names.launcher != Launcher::torchrun || !variable("TORCHELASTIC_RUN_ID")) return false;
    throw ConfigError("launch: torchrun's TORCHELASTIC_RUN_ID is set and RANK is not; unset both, or pass both on");
  }
  if (!names.size || variable(names.size) || names.launcher == Launcher::pmi) return true;
  throw ConfigError("launch: the environment has " + describe_variable(variable, names.rank) + " but not " +
                    names.size + ", so that " + name(names.launcher) +
                    "'s ranks would each run alone; set both, or neither");
}

LOCKSTEP_COLD_INLINE LauncherValues read_values(LauncherVariables const& names, Lookup variable) {
  auto const number = [&](char const* which, int least, int most) {
    auto const* const text = which ? variable(which) : nullptr;
    if (!text) return -1;
    return static_cast<int>(parse_variable(which, text, static_cast<std::uint64_t>(least),
                                           static_cast<std::uint64_t>(most), launcher_remedy));
  };
  LauncherValues values{&names, -1, number(names.size, 1, max_ranks), -1, -1};
  auto const size = values.size > 0 ? values.size : max_ranks;
  values.rank = number(names.rank, 0, size - 1);
  if (names.launcher == Launcher::slurm) {
    auto const node = number("SLURM_NODEID", 0, max_ranks);
    if (auto const* const list = variable(names.local_size); list && node >= 0)
      values.local_size = slurm_tasks_of(list, node);
    else if (values.size == 1 || number("SLURM_STEP_NUM_NODES", 1, max_ranks) == 1)
      values.local_size = values.size;
  } else {
    values.local_size = number(names.local_size, 1, size);
  }
  values.local_rank = number(names.local_rank, 0, (values.local_size > 0 ? values.local_size : size) - 1);
  return values;
}

}}}  // namespace lockstep::launch::detail
