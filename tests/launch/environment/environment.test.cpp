// SPDX-License-Identifier: Apache-2.0
#include <lockstep/launch/environment/environment.hpp>

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

using namespace lockstep::launch;
using lockstep::ConfigError;

namespace {

using Variables = std::map<std::string, std::string>;

Lookup in(Variables const& variables) {
  return {[](void const* context, char const* name) -> char const* {
            auto const& all = *static_cast<Variables const*>(context);
            auto const found = all.find(name);
            return found == all.end() ? nullptr : found->second.c_str();
          },
          &variables};
}

/// Parses "RANK=0 WORLD_SIZE=2" into variables.
Variables read(std::string const& text) {
  Variables out;
  for (std::size_t at = 0; at < text.size();) {
    auto const end = std::min(text.find(' ', at), text.size()), equals = text.find('=', at);
    out[text.substr(at, equals - at)] = text.substr(equals + 1, end - equals - 1);
    at = end + 1;
  }
  return out;
}

Variables const own{{"LOCKSTEP_RANK", "1"},
                    {"LOCKSTEP_WORLD_SIZE", "4"},
                    {"LOCKSTEP_SUPERVISOR", "4242"},
                    {"LOCKSTEP_MEMORY_FD", "3"},
                    {"LOCKSTEP_JOB", "18446744073709551615"},
                    {"LOCKSTEP_RESTARTS", "2"}};

// Variables that launchers were seen to set, reduced to the relevant ones.
std::string const torchrun =
    "GROUP_RANK=0 GROUP_WORLD_SIZE=1 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=36245 RANK=1 "
    "ROLE_RANK=1 ROLE_WORLD_SIZE=2 TORCHELASTIC_MAX_RESTARTS=0 TORCHELASTIC_RESTART_COUNT=0 "
    "TORCHELASTIC_RUN_ID=9bfbbd7a TORCHELASTIC_USE_AGENT_STORE=True WORLD_SIZE=2";
std::string const torchrun_node_1 =
    "GROUP_RANK=1 GROUP_WORLD_SIZE=2 LOCAL_RANK=3 LOCAL_WORLD_SIZE=4 MASTER_ADDR=n1 MASTER_PORT=29500 RANK=7 "
    "WORLD_SIZE=8 TORCHELASTIC_RUN_ID=none TORCHELASTIC_RESTART_COUNT=1";
std::string const openmpi_4 =
    "OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 OMPI_COMM_WORLD_NODE_RANK=1 OMPI_COMM_WORLD_RANK=1 "
    "OMPI_COMM_WORLD_SIZE=2 OMPI_MCA_ess_base_jobid=239206401 PMIX_NAMESPACE=239206401 PMIX_RANK=1";
std::string const openmpi_2_hosts =
    "OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=4 OMPI_COMM_WORLD_RANK=4 OMPI_COMM_WORLD_SIZE=8 "
    "PMIX_RANK=4 PRTE_LAUNCHED=1";
std::string const mpich = "MPI_LOCALNRANKS=2 MPI_LOCALRANKID=1 PMI_FD=8 PMI_RANK=1 PMI_SIZE=2 HYDI_CONTROL_FD=7";
std::string const mvapich =
    "MV2_COMM_WORLD_LOCAL_RANK=1 MV2_COMM_WORLD_LOCAL_SIZE=2 MV2_COMM_WORLD_RANK=3 MV2_COMM_WORLD_SIZE=4";
std::string const allocation = "SLURM_JOB_ID=7 SLURM_NTASKS=4 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0 ";
std::string const step =
    "SLURM_JOB_ID=7 SLURM_NTASKS=4 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=2 SLURM_LOCALID=2 "
    "SLURM_NODEID=0 SLURM_STEP_NUM_NODES=1 SLURM_STEP_TASKS_PER_NODE=4 ";
std::string const step_2_hosts =
    "SLURM_JOB_ID=7 SLURM_STEP_ID=3 SLURM_STEP_NUM_TASKS=7 SLURM_PROCID=6 SLURM_LOCALID=2 SLURM_NODEID=1 "
    "SLURM_STEP_NUM_NODES=2 SLURM_STEP_TASKS_PER_NODE=4,3 ";
std::string const step_task_per_node =
    "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1 SLURM_LOCALID=0 SLURM_NODEID=1 "
    "SLURM_STEP_NUM_NODES=2 SLURM_STEP_TASKS_PER_NODE=1(x2) ";
std::string const step_of_one =
    "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0 "
    "SLURM_STEP_NUM_NODES=1 SLURM_STEP_TASKS_PER_NODE=1 ";

struct Found {
  std::string where;
  std::string variables;
  Environment expected;
};

struct Refused {
  std::string where;
  std::string variables;
  std::vector<std::string> expected_message;
};

}  // namespace

TEST_CASE("recorded environments are parsed") {
  std::vector<Found> const cases{
      {"nothing", "", {}},
      {"a login shell", "HOME=/root LOCKSTEP_DEBUG=info", {}},
      {"a size without a launcher", "WORLD_SIZE=4 MASTER_ADDR=n1 MASTER_PORT=29500", {}},
      {"torchrun", torchrun, {Launcher::torchrun, 1, 2, 1, 2}},
      {"torchrun, second of two nodes, restarted", torchrun_node_1, {Launcher::torchrun, 7, 8, 3, 4, 1}},
      {"torchrun --nproc-per-node 1",
       "RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1",
       {Launcher::torchrun, 0, 1, 0, 1}},
      {"by hand, as for torch", "RANK=0 WORLD_SIZE=1 MASTER_ADDR=localhost", {Launcher::torchrun, 0, 1, 0, 1}},
      {"Open MPI 4", openmpi_4, {Launcher::openmpi, 1, 2, 1, 2}},
      {"Open MPI 5, second of two hosts", openmpi_2_hosts, {Launcher::openmpi, 4, 8, 0, 4}},
      {"mpirun in a process restarted by torchrun",
       openmpi_4 + " TORCHELASTIC_RESTART_COUNT=3",
       {Launcher::openmpi, 1, 2, 1, 2}},
      {"mpirun -n 1", "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 PMIX_RANK=0", {Launcher::openmpi, 0, 1, 0, 1}},
      {"MPICH", mpich, {Launcher::pmi, 1, 2, 1, 2}},
      {"MVAPICH2", mvapich, {Launcher::mvapich, 3, 4, 1, 2}},
      {"salloc or sbatch without srun", allocation, {}},
      {"the shell of salloc, itself a step", allocation + "SLURM_STEP_ID=4294967290 SLURM_STEP_NUM_TASKS=4", {}},
      {"srun", step, {Launcher::slurm, 2, 4, 2, 4}},
      {"srun, last of two uneven nodes", step_2_hosts, {Launcher::slurm, 6, 7, 2, 3}},
      {"srun, task per node", step_task_per_node, {Launcher::slurm, 1, 2, 0, 1}},
      {"srun -n 1", step_of_one, {Launcher::slurm, 0, 1, 0, 1}},
      {"srun of an old version, one node",
       "SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1 SLURM_LOCALID=1 SLURM_STEP_NUM_NODES=1",
       {Launcher::slurm, 1, 2, 1, 2}},
      {"srun --mpi=pmix", step + "PMIX_RANK=2 PMIX_NAMESPACE=slurm.pmix.7.0", {Launcher::pmix, 2, 4, 2, 4}},
      {"srun --mpi=pmi2", step + "PMI_FD=9 PMI_RANK=2 PMI_SIZE=4 PMI_JOBID=7", {Launcher::pmi, 2, 4, 2, 4}},
      {"torchrun in one task", step_of_one + torchrun, {Launcher::torchrun, 1, 2, 1, 2}},
      {"torchrun in a task of each node", step_task_per_node + torchrun_node_1, {Launcher::torchrun, 7, 8, 3, 4, 1}},
      {"torchrun in an allocation", allocation + torchrun, {Launcher::torchrun, 1, 2, 1, 2}},
      {"torchrun's variables set from srun's",
       step + "RANK=2 WORLD_SIZE=4 LOCAL_RANK=2 LOCAL_WORLD_SIZE=4",
       {Launcher::torchrun, 2, 4, 2, 4}},
      {"the same without places on the host",
       step + "RANK=2 WORLD_SIZE=4 MASTER_ADDR=n1",
       {Launcher::torchrun, 2, 4, 2, 4}},
      {"as many processes as the node has GPUs",
       step + "SLURM_GPUS_ON_NODE=16 RANK=1 WORLD_SIZE=16 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4",
       {Launcher::torchrun, 1, 16, 1, 4}},
      {"a torchrun for each node of fewer GPUs than processes",
       step_task_per_node + torchrun_node_1 + " SLURM_GPUS_ON_NODE=2",
       {Launcher::torchrun, 7, 8, 3, 4, 1}},
      {"mpirun whose daemons srun started", step_task_per_node + openmpi_2_hosts, {Launcher::openmpi, 4, 8, 0, 4}},
      {"mpirun in a step of one", step_of_one + openmpi_4, {Launcher::openmpi, 1, 2, 1, 2}},
      {"torchrun under mpirun, one for each host",
       "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=1 " +
           torchrun_node_1,
       {Launcher::torchrun, 7, 8, 3, 4, 1}},
      {"settled: a step of four programs apart", step + "LOCKSTEP_LAUNCHER=single", {}},
      {"settled: torchrun's word", step + torchrun + " LOCKSTEP_LAUNCHER=torchrun", {Launcher::torchrun, 1, 2, 1, 2}},
      {"settled: srun's word", step + torchrun + " LOCKSTEP_LAUNCHER=slurm", {Launcher::slurm, 2, 4, 2, 4}},
  };
  for (auto const& one : cases) {
    CAPTURE(one.where);
    auto const variables = read(one.variables);
    auto const found = detect(in(variables));
    CHECK(std::string(name(found.launcher)) == name(one.expected.launcher));
    CHECK(found.rank == one.expected.rank);
    CHECK(found.size == one.expected.size);
    CHECK(found.local_rank == one.expected.local_rank);
    CHECK(found.local_size == one.expected.local_size);
    CHECK(found.one_host() == (one.expected.size == one.expected.local_size));
    CHECK(found.restarts == one.expected.restarts);
    CHECK(found.variables.empty() == (found.launcher == Launcher::single));
  }
}

TEST_CASE("the source of a rank's place is kept, with the launcher's variable names") {
  auto const reported = [](std::string const& text) {
    auto const variables = read(text);
    return detect(in(variables)).variables;
  };
  CHECK(reported(torchrun) == "RANK=1, WORLD_SIZE=2, LOCAL_RANK=1, LOCAL_WORLD_SIZE=2");
  CHECK(reported(step + "PMIX_RANK=2") == "PMIX_RANK=2");
}

TEST_CASE("contradictory environments are refused, with the variables") {
  auto const tasks = [](int rank) {
    return "OMPI_COMM_WORLD_RANK=" + std::to_string(rank) +
           " OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=1";
  };
  std::vector<Refused> const cases{
      {"mpirun -n 1 in each task", step + tasks(0), {"OMPI_COMM_WORLD_SIZE=1", "SLURM_STEP_NUM_TASKS=4", "--mpi=pmix"}},
      {"mpirun -n 1 in a task of each node", step_task_per_node + tasks(0), {"OMPI_COMM_WORLD_SIZE=1"}},
      {"mpirun of its own in a task of each node", step_task_per_node + openmpi_4, {"SLURM_STEP_NUM_TASKS=2"}},
      {"mpirun over two hosts in one of four tasks", step + openmpi_2_hosts, {"OMPI_COMM_WORLD_SIZE=8"}},
      {"torchrun in each of four tasks",
       step + "RANK=1 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4",
       {"4 tasks x 4 processes", "WORLD_SIZE=4", "SLURM_STEP_NUM_TASKS=4", "--nnodes"}},
      {"the same in the first task",
       "SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0 "
       "SLURM_STEP_TASKS_PER_NODE=4 RANK=0 WORLD_SIZE=4 LOCAL_RANK=0 LOCAL_WORLD_SIZE=4 TORCHELASTIC_RUN_ID=none",
       {"4 tasks x 4 processes"}},
      {"the same, joined, on a node of four GPUs",
       step + "SLURM_GPUS_ON_NODE=4 RANK=1 WORLD_SIZE=16 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4",
       {"4 tasks x 4 processes for 4 GPUs", "LOCAL_WORLD_SIZE=4", "--ntasks-per-node=1"}},
      {"torchrun of one process in each task",
       step + "RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1",
       {"WORLD_SIZE=1", "SLURM_STEP_NUM_TASKS=4", "LOCKSTEP_LAUNCHER=single"}},
      {"two mpiruns", openmpi_4 + " PMI_RANK=0 PMI_SIZE=4 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=4", {"PMI_SIZE=4"}},
      {"another rank in the same world", step + "RANK=1 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2", {"RANK=1"}},
      {"a rank without a world", "RANK=3", {"RANK=3", "not WORLD_SIZE"}},
      {"torchrun, half passed on", "TORCHELASTIC_RUN_ID=none WORLD_SIZE=2", {"RANK is not"}},
      {"Open MPI, half passed on", "OMPI_COMM_WORLD_RANK=0", {"not OMPI_COMM_WORLD_SIZE"}},
      {"no place on the host", "RANK=3 WORLD_SIZE=4 MASTER_ADDR=n1", {"(LOCAL_RANK, LOCAL_WORLD_SIZE missing)"}},
      {"a rank without a size", "PMIX_RANK=0 PMIX_NAMESPACE=x", {"PMIX_RANK=0"}},
      {"PMI without a size", "PMI_RANK=0", {"(PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS missing)"}},
      {"PMI with a place and without a size",
       "PMI_RANK=0 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=4",
       {"MPICH's mpirun started this process (PMI_RANK=0)", "(PMI_SIZE missing)"}},
      {"a rank beyond the world", "RANK=4 WORLD_SIZE=4 LOCAL_RANK=0 LOCAL_WORLD_SIZE=4", {"RANK=4", "from 0 to 3"}},
      {"more local ranks than ranks", "RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=4", {"LOCAL_WORLD_SIZE=4"}},
      {"a place that the host has not",
       "RANK=3 WORLD_SIZE=4 LOCAL_RANK=3 LOCAL_WORLD_SIZE=2",
       {"LOCAL_RANK=3", "to 1"}},
      {"no number", "RANK=0 WORLD_SIZE=two LOCAL_RANK=0 LOCAL_WORLD_SIZE=2", {"WORLD_SIZE=two"}},
      {"an unreadable list of tasks",
       "SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=1 SLURM_LOCALID=1 SLURM_NODEID=1 "
       "SLURM_STEP_TASKS_PER_NODE=4(x",
       {"SLURM_STEP_TASKS_PER_NODE=4(x and SLURM_NODEID=1 do not give", "4(x2),3", "LOCKSTEP_LAUNCHER=single"}},
      {"a list of tasks, and no number of this node",
       "SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=1 SLURM_LOCALID=1 SLURM_STEP_TASKS_PER_NODE=2(x2)",
       {"SLURM_NODEID is not set do not give"}},
      {"a number of ranks and a place, but no rank", "WORLD_SIZE=4 LOCAL_RANK=1", {"WORLD_SIZE=4", "but not RANK"}},
      {"no number in an empty variable",
       "RANK= WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2",
       {"RANK='' is not a number from 0 to 1; correct it, or set LOCKSTEP_LAUNCHER=single"}},
      {"settled by an unknown word", "LOCKSTEP_LAUNCHER=mpirun", {"LOCKSTEP_LAUNCHER=mpirun", "openmpi", "unset it"}},
      {"settled, of another size than the step that has places",
       step + "PMI_RANK=2 PMI_SIZE=8 LOCKSTEP_LAUNCHER=pmi",
       {"MPI_LOCALRANKID, MPI_LOCALNRANKS missing"}},
      {"settled, another rank than the step's that has a place",
       step + "PMI_RANK=1 PMI_SIZE=4 LOCKSTEP_LAUNCHER=pmi",
       {"MPI_LOCALRANKID, MPI_LOCALNRANKS missing"}},
      {"settled by who is not there, in a step", step + "LOCKSTEP_LAUNCHER=pmi", {"PMI_RANK is not set"}},
      {"settled by who is not there",
       mpich + " LOCKSTEP_LAUNCHER=torchrun",
       {"LOCKSTEP_LAUNCHER=torchrun", "RANK is not set", "start with torchrun"}},
  };
  for (auto const& one : cases) {
    CAPTURE(one.where);
    auto const variables = read(one.variables);
    std::string message;
    try {
      (void)detect(in(variables));
    } catch (ConfigError const& error) {
      message = error.what();
    }
    CAPTURE(message);
    REQUIRE_FALSE(message.empty());
    for (auto const& part : one.expected_message) CHECK_MESSAGE(message.find(part) != std::string::npos, part);
  }
}

TEST_CASE("Slurm's list of tasks is parsed") {
  using detail::slurm_tasks_of;
  CHECK(slurm_tasks_of("4", 0) == 4);
  CHECK(slurm_tasks_of("4(x2),3", 1) == 4);
  CHECK(slurm_tasks_of("4(x2),3", 2) == 3);
  for (auto const* wrong : {"", "x", "4(x2", "4(x", "4,", "0", "4;3", "4(x3;", "4;3;2"})
    CHECK(slurm_tasks_of(wrong, 2) == -1);
}

TEST_CASE("a rank of a supervisor finds its place, whatever started the supervisor") {
  for (auto const& around : {std::string(), step, torchrun, openmpi_4}) {
    auto variables = read(around);
    variables.insert(own.begin(), own.end());
    auto const found = detect(in(variables));
    CHECK(found.launcher == Launcher::lockstep);
    CHECK(found.rank == 1);
    CHECK(found.local_size == 4);
  }
  auto const place = detail::SupervisedRank::read(in(own));
  CHECK(place.supervisor == 4242);
  CHECK(place.memory == 3);
  CHECK(place.job == UINT64_MAX);
  CHECK(place.restarts == 2);
  Variables written;
  for (auto const& text : place.assignments())
    written[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
  CHECK(written == own);
}

TEST_CASE("incomplete variables of a supervisor are refused, with the missing ones") {
  for (auto const& [name, value] : own) {
    auto part = own;
    part.erase(name);
    CHECK_THROWS_WITH_AS(detect(in(part)), doctest::Contains(("but not " + name + ";").c_str()), ConfigError);
    Variables const alone{{name, value}};
    CHECK_THROWS_AS(detect(in(alone)), ConfigError);
  }
}

TEST_CASE("invalid values of a supervisor are refused by name") {
  for (auto const& [name, value] : std::multimap<std::string, std::string>{{"LOCKSTEP_RANK", "4"},
                                                                           {"LOCKSTEP_RANK", "-1"},
                                                                           {"LOCKSTEP_WORLD_SIZE", "0"},
                                                                           {"LOCKSTEP_WORLD_SIZE", "257"},
                                                                           {"LOCKSTEP_WORLD_SIZE", "4 "},
                                                                           {"LOCKSTEP_SUPERVISOR", ""},
                                                                           {"LOCKSTEP_MEMORY_FD", "three"},
                                                                           {"LOCKSTEP_JOB", "18446744073709551616"}}) {
    auto variables = own;
    variables[name] = value;
    auto const shown = name + (value == "4 " ? "='4 '" : "=" + value);
    CHECK_THROWS_WITH_AS(detect(in(variables)), doctest::Contains(shown.c_str()), ConfigError);
  }
}
