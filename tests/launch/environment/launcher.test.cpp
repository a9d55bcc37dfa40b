// SPDX-License-Identifier: Apache-2.0
#include <lockstep/launch/environment/launcher.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace lockstep::launch;

TEST_CASE("launchers have their usual names") {
  CHECK(std::string(name(Launcher::lockstep)) == "--nproc");
  CHECK(std::string(name(Launcher::torchrun)) == "torchrun");
  CHECK(std::string(name(Launcher::openmpi)) == "Open MPI's mpirun");
  CHECK(std::string(name(Launcher::mvapich)) == "mpirun_rsh");
  CHECK(std::string(name(Launcher::pmix)) == "PMIx");
  CHECK(std::string(name(Launcher::pmi)) == "MPICH's mpirun");
  CHECK(std::string(name(Launcher::slurm)) == "srun");
  CHECK(std::string(name(Launcher::single)) == "no launcher");
}
