// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/socket.h>
#include <unistd.h>

#include <initializer_list>
#include <string>

#include <lockstep/launch/environment/environment.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Returns the pid of MPICH's mpirun, or of its proxy on this host; 0 if unknown. MPICH numbers no jobs, but its ranks
/// inherit one end of a socket that mpirun or its proxy has created.
inline int pmi_server(Lookup variable) {
  auto const* const text = variable("PMI_FD");
  if (!text) return 0;
  auto const file = static_cast<int>(parse_variable("PMI_FD", text, 0, INT32_MAX, "; it was set by another program"));
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return ::getsockopt(file, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 ? peer.pid : 0;
}

inline void add_variables(std::string& key, Lookup variable, std::initializer_list<char const*> names) {
  for (auto const* one : names)
    if (auto const* const value = variable(one)) key += std::string(" ") + one + "=" + value;
}

/// Returns the launcher's identification of the run: equal on all ranks and hosts, different in any other run. Consists
/// of the launcher's name alone if the launcher has no identification. Restarts by torchrun do not change it: torchrun
/// starts no rank before all have ended.
[[nodiscard]] inline std::string launcher_key(Environment const& environment, Lookup variable) {
  auto const slurm = {"SLURM_CLUSTER_NAME", "SLURM_JOB_ID", "SLURM_STEP_ID"};
  std::string key = name(environment.launcher);
  switch (environment.launcher) {
    case Launcher::torchrun:
      add_variables(key, variable, {"TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"});
      break;
    case Launcher::openmpi:
      add_variables(key, variable, {"PMIX_NAMESPACE", "OMPI_MCA_orte_hnp_uri", "OMPI_MCA_ess_base_jobid"});
      break;
    case Launcher::mvapich:
      add_variables(key, variable, {"MPISPAWN_MPIRUN_ID"});
      break;
    case Launcher::pmix:
      add_variables(key, variable, {"PMIX_NAMESPACE"});
      add_variables(key, variable, slurm);
      break;
    case Launcher::pmi:
      add_variables(key, variable, {"PMI_JOBID"});
      add_variables(key, variable, slurm);
      break;
    case Launcher::slurm:
      add_variables(key, variable, slurm);
      break;
    case Launcher::lockstep:
    case Launcher::single:
      break;
  }
  return key;
}
/// Returns an identification of a run whose ranks are all on this host. Adds values that the launcher sets per host, or
/// the parent's pid if nothing else distinguishes runs.
[[nodiscard]] inline std::string job_key(Environment const& environment, Lookup variable = {}) {
  auto key = launcher_key(environment, variable);
  if (environment.launcher == Launcher::torchrun) add_variables(key, variable, {"TORCHELASTIC_RESTART_COUNT"});
  if (environment.launcher == Launcher::mvapich || environment.launcher == Launcher::pmi) {
    add_variables(key, variable, {"PMI_PORT"});
    if (auto const server = pmi_server(variable)) key += " server=" + std::to_string(server);
  }
  if (key == name(environment.launcher))
    key += " parent=" + std::to_string(::getppid());  // one script has started all ranks
  return key + " size=" + std::to_string(environment.size);
}

}}}  // namespace lockstep::launch::detail
