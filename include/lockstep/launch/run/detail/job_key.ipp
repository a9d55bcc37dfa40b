// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/run/detail/job_key.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_INLINE int pmi_server(Lookup variable) {
  auto const* const text = variable("PMI_FD");
  if (!text) return 0;
  auto const file = static_cast<int>(parse_variable("PMI_FD", text, 0, INT32_MAX, launcher_remedy));
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return ::getsockopt(file, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 ? peer.pid : 0;
}

LOCKSTEP_INLINE void add_variables(std::string& key, Lookup variable, std::initializer_list<char const*> names) {
  for (auto const* one : names)
    if (auto const* const value = variable(one)) key += std::string(" ") + one + "=" + value;
}

LOCKSTEP_INLINE std::string launcher_key(Environment const& environment, Lookup variable) {
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

LOCKSTEP_INLINE std::string job_key(Environment const& environment, Lookup variable) {
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
