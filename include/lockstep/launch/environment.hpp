// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/processors.hpp>
#include <lockstep/launch/detail/check_launchers.hpp>
#include <lockstep/launch/detail/launch_source.hpp>
#include <lockstep/launch/detail/rank_place.hpp>
#include <lockstep/launch/launcher.hpp>

namespace lockstep::inline LOCKSTEP_ABI::launch {

/// Where a launcher put this process among the ranks of a run.
struct Environment {
  Launcher launcher = Launcher::single;
  int rank = 0;
  int size = 1;
  int local_rank = 0;  ///< among the ranks of this host
  int local_size = 1;
  int restarts = 0;       ///< how often the launcher has started the ranks anew
  std::string told = {};  ///< the variables that say so: "RANK=0, WORLD_SIZE=2, …"

  [[nodiscard]] bool one_host() const noexcept { return local_size == size; }
};

namespace detail {

inline Environment as_environment(LaunchSource const& source, Lookup variable) {
  Environment out{source.launcher(), source.rank, source.size, source.local_rank, source.local_size, 0, {}};
  if (auto const* const count = variable("TORCHELASTIC_RESTART_COUNT"); count && out.launcher == Launcher::torchrun)
    out.restarts = static_cast<int>(
        parse_variable("TORCHELASTIC_RESTART_COUNT", count, 0, INT32_MAX, "; it was set by another program"));
  for (auto const* name : {source.names->rank, source.names->size, source.names->local_rank, source.names->local_size})
    if (name && variable(name)) out.told += (out.told.empty() ? "" : ", ") + tell_variable(variable, name);
  return out;
}

/// LOCKSTEP_LAUNCHER, by which a user settles what the variables leave open; null where all may speak.
inline LaunchNames const* chosen(Lookup variable, bool& single) {
  auto const* const choice = variable("LOCKSTEP_LAUNCHER");
  if (!choice) return nullptr;
  std::string_view const text = choice;
  constexpr char const* words[]{"torchrun", "openmpi", "mvapich", "pmix", "pmi", "slurm"};
  for (std::size_t i = 0; i < std::size(words); ++i)
    if (text == words[i]) return &launch_names[i];
  single = text == "single";
  if (!single)
    throw ConfigError("launch: LOCKSTEP_LAUNCHER=" + std::string(text) +
                      " is none of torchrun, openmpi, mvapich, pmix, pmi, slurm, single");
  return nullptr;
}

/// What this launcher does not say of itself: PMIx has no size, others no place on the host. Slurm knows when it is
/// Slurm that started them.
inline void complete(LaunchSource& source, LaunchSource const* slurm) {
  bool const same_tasks = slurm && (source.size < 0 || source.size == slurm->size) && source.rank == slurm->rank;
  if (same_tasks && source.size < 0) source.size = slurm->size;
  if (same_tasks && source.local_rank < 0) source.local_rank = slurm->local_rank;
  if (same_tasks && source.local_size < 0) source.local_size = slurm->local_size;
  if (source.size != 1) return;
  source.local_rank = 0;
  source.local_size = 1;
}

inline void refuse_incomplete(LaunchSource const& source, Lookup variable) {
  auto const& names = *source.names;
  if (source.size > 0 && source.local_rank >= 0 && source.local_size > 0) return;
  std::string missing;
  for (auto const& [value, name] : {std::pair{source.size, names.size ? names.size : "SLURM_STEP_NUM_TASKS"},
                                    std::pair{source.local_rank, names.local_rank ? names.local_rank : "SLURM_LOCALID"},
                                    std::pair{source.local_size, names.local_size ? names.local_size : "SLURM_NODEID"}})
    if (value < 0) missing += (missing.empty() ? "" : ", ") + std::string(name);
  throw ConfigError("launch: " + std::string(name(source.launcher())) + " started this process (" +
                    tell_variable(variable, names.rank) + ") and does not say how many ranks there are, or where (" +
                    missing + " missing); set these, or LOCKSTEP_LAUNCHER=single for a program on its own");
}

}  // namespace detail

/// Where this process stands, by the first that says so: a supervisor of Lockstep, torchrun, Open MPI, MVAPICH2, PMIx,
/// PMI, a Slurm step; alone when none does. Never alone by mistake: launchers that disagree are refused, unless one has
/// started the other and the numbers say so (a torchrun in each task of srun). LOCKSTEP_LAUNCHER settles it by hand.
/// @throws ConfigError with the variables, when they contradict each other, are incomplete, or are no numbers
[[nodiscard]] inline Environment detect(Lookup variable = {}) {
  using namespace detail;
  if (RankPlace::any(variable)) {
    auto const place = RankPlace::read(variable);
    return {Launcher::lockstep, place.rank, place.size, place.rank, place.size, place.restarts, {}};
  }
  bool single = false;
  auto const* const only = chosen(variable, single);
  if (single) return {};
  std::vector<LaunchSource> sources;
  for (auto const& names : launch_names)
    if ((!only || only == &names || (names.launcher == Launcher::slurm && in_slurm_step(variable))) &&
        is_present(names, variable))
      sources.push_back(read_source(names, variable));
  if (only && (sources.empty() || sources.front().names != only))
    throw ConfigError("launch: LOCKSTEP_LAUNCHER names a launcher whose variables are missing (" +
                      tell_variable(variable, only->rank) + ")");
  if (sources.empty()) return {};

  auto const* const slurm = sources.back().launcher() == Launcher::slurm ? &sources.back() : nullptr;
  auto& first = sources.front();
  complete(first, slurm == &first ? nullptr : slurm);
  for (std::size_t i = 1; i < sources.size() && !only; ++i) check_agreement(first, sources[i], variable);
  refuse_incomplete(first, variable);
  return as_environment(first, variable);
}

/// The processors that the ranks of this host share. mpirun and srun may have given each rank its own.
[[nodiscard]] inline int cores_of_ranks(Environment const& place) {
  auto const mine = processors();
  using enum Launcher;
  bool const inherits = place.launcher == lockstep || place.launcher == torchrun || place.launcher == single;
  return inherits || mine == ::sysconf(_SC_NPROCESSORS_ONLN) ? mine : mine * place.local_size;
}

}  // namespace lockstep::inline LOCKSTEP_ABI::launch
