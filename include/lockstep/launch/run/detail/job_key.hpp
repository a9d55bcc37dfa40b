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
int pmi_server(Lookup variable);

void add_variables(std::string& key, Lookup variable, std::initializer_list<char const*> names);

/// Returns the launcher's identification of the run: equal on all ranks and hosts, different in any other run. Consists
/// of the launcher's name alone if the launcher has no identification. Restarts by torchrun do not change it: torchrun
/// starts no rank before all have ended.
[[nodiscard]] std::string launcher_key(Environment const& environment, Lookup variable);
/// Returns an identification of a run whose ranks are all on this host. Adds values that the launcher sets per host, or
/// the parent's pid if nothing else distinguishes runs.
[[nodiscard]] std::string job_key(Environment const& environment, Lookup variable = {});

}}}  // namespace lockstep::launch::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/run/detail/job_key.ipp>
#endif
