// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include <lockstep/launch/environment.hpp>

namespace lockstep::inline LOCKSTEP_ABI::launch::detail {

/// MPICH's mpirun numbers no jobs. Its ranks hold one end of a socket whose other end it made itself.
inline int pmi_server(Lookup variable) {
  auto const* const text = variable("PMI_FD");
  if (!text) return 0;
  auto const file = static_cast<int>(parse_variable("PMI_FD", text, 0, INT32_MAX, "; it was set by another program"));
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return ::getsockopt(file, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 ? peer.pid : 0;
}

/// The same text in all ranks of a run, another in any other run: what their launcher calls it. Only its own name where
/// it calls it nothing.
[[nodiscard]] inline std::string launcher_key(Environment const& environment, Lookup variable) {
  auto const slurm = {"SLURM_CLUSTER_NAME", "SLURM_JOB_ID", "SLURM_STEP_ID"};
  std::string key = name(environment.launcher);
  auto const add = [&](std::initializer_list<char const*> names) {
    for (auto const* one : names)
      if (auto const* const value = variable(one)) key += std::string(" ") + one + "=" + value;
  };
  switch (environment.launcher) {
    case Launcher::torchrun:
      add({"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT"});
      break;
    case Launcher::openmpi:
      add({"PMIX_NAMESPACE", "OMPI_MCA_orte_hnp_uri", "OMPI_MCA_ess_base_jobid"});
      break;
    case Launcher::mvapich:
      add({"PMI_PORT", "PMI_FD", "MPISPAWN_MPIRUN_ID"});
      break;
    case Launcher::pmix:
      add({"PMIX_NAMESPACE"});
      add(slurm);
      break;
    case Launcher::pmi:
      add({"PMI_JOBID", "PMI_PORT"});
      add(slurm);
      if (auto const server = pmi_server(variable)) key += " server=" + std::to_string(server);
      break;
    case Launcher::slurm:
      add(slurm);
      break;
    case Launcher::lockstep:
    case Launcher::single:
      break;
  }
  return key;
}
/// The same where nothing but this host tells runs apart.
[[nodiscard]] inline std::string job_key(Environment const& environment, Lookup variable = {}) {
  auto key = launcher_key(environment, variable);
  if (key == name(environment.launcher))
    key += " parent=" + std::to_string(::getppid());  // one script has started them all
  return key + " size=" + std::to_string(environment.size);
}

}  // namespace lockstep::inline LOCKSTEP_ABI::launch::detail
