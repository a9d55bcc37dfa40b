// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/environment/environment.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_INLINE Environment to_environment(LauncherValues const& values, Lookup variable) {
  Environment out{values.launcher(), values.rank, values.size, values.local_rank, values.local_size, 0, {}};
  if (auto const* const count = variable("TORCHELASTIC_RESTART_COUNT"); count && out.launcher == Launcher::torchrun)
    out.restarts = static_cast<int>(
        parse_variable("TORCHELASTIC_RESTART_COUNT", count, 0, INT32_MAX, "; it was set by another program"));
  for (auto const* name : {values.names->rank, values.names->size, values.names->local_rank, values.names->local_size})
    if (name && variable(name))
      out.variables += (out.variables.empty() ? "" : ", ") + describe_variable(variable, name);
  return out;
}

LOCKSTEP_INLINE LauncherVariables const* chosen_launcher(Lookup variable, bool& single) {
  auto const* const choice = variable("LOCKSTEP_LAUNCHER");
  if (!choice) return nullptr;
  std::string_view const text = choice;
  constexpr char const* words[]{"torchrun", "openmpi", "mvapich", "pmix", "pmi", "slurm"};
  for (std::size_t i = 0; i < std::size(words); ++i)
    if (text == words[i]) return &launcher_variables[i];
  single = text == "single";
  if (!single)
    throw ConfigError("launch: LOCKSTEP_LAUNCHER=" + std::string(text) +
                      " is not one of torchrun, openmpi, mvapich, pmix, pmi, slurm, single");
  return nullptr;
}

LOCKSTEP_INLINE void fill_missing_sizes(LauncherValues& values, LauncherValues const* slurm) {
  bool const same_tasks = slurm && (values.size < 0 || values.size == slurm->size) && values.rank == slurm->rank;
  if (same_tasks && values.size < 0) values.size = slurm->size;
  if (same_tasks && values.local_rank < 0) values.local_rank = slurm->local_rank;
  if (same_tasks && values.local_size < 0) values.local_size = slurm->local_size;
  if (values.size != 1) return;
  values.local_rank = 0;
  values.local_size = 1;
}

LOCKSTEP_INLINE void check_complete(LauncherValues const& values, Lookup variable) {
  auto const& names = *values.names;
  if (values.size > 0 && values.local_rank >= 0 && values.local_size > 0) return;
  std::string missing;
  for (auto const& [value, name] : {std::pair{values.size, names.size ? names.size : "SLURM_STEP_NUM_TASKS"},
                                    std::pair{values.local_rank, names.local_rank ? names.local_rank : "SLURM_LOCALID"},
                                    std::pair{values.local_size, names.local_size ? names.local_size : "SLURM_NODEID"}})
    if (value < 0) missing += (missing.empty() ? "" : ", ") + std::string(name);
  throw ConfigError("launch: " + std::string(name(values.launcher())) + " started this process (" +
                    describe_variable(variable, names.rank) +
                    "), but the number or the place of its ranks is unknown (" + missing +
                    " missing); set these, or LOCKSTEP_LAUNCHER=single for a program on its own");
}

}}}  // namespace lockstep::launch::detail

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

LOCKSTEP_INLINE Environment detect(Lookup variable) {
  using namespace detail;
  if (SupervisedRank::any(variable)) {
    auto const place = SupervisedRank::read(variable);
    return {Launcher::lockstep, place.rank, place.size, place.rank, place.size, place.restarts, {}};
  }
  bool single = false;
  auto const* const only = chosen_launcher(variable, single);
  if (single) return {};
  std::vector<LauncherValues> launchers;
  for (auto const& names : launcher_variables)
    if ((!only || only == &names || (names.launcher == Launcher::slurm && in_slurm_step(variable))) &&
        is_present(names, variable))
      launchers.push_back(read_values(names, variable));
  if (only && (launchers.empty() || launchers.front().names != only))
    throw ConfigError("launch: LOCKSTEP_LAUNCHER names a launcher whose variables are missing (" +
                      describe_variable(variable, only->rank) + ")");
  if (launchers.empty()) return {};

  auto const* const slurm = launchers.back().launcher() == Launcher::slurm ? &launchers.back() : nullptr;
  auto& first = launchers.front();
  fill_missing_sizes(first, slurm == &first ? nullptr : slurm);
  for (std::size_t i = 1; i < launchers.size() && !only; ++i) check_launchers(first, launchers[i], variable);
  check_complete(first, variable);
  return to_environment(first, variable);
}

LOCKSTEP_INLINE int cores_of_ranks(Environment const& place) {
  auto const mine = processors();
  using enum Launcher;
  bool const inherits = place.launcher == lockstep || place.launcher == torchrun || place.launcher == single;
  return inherits || mine == ::sysconf(_SC_NPROCESSORS_ONLN) ? mine : mine * place.local_size;
}

}}}  // namespace lockstep::launch
