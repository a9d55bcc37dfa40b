// SPDX-License-Identifier: Apache-2.0
// All-reduce of float32 on one machine: Lockstep's engines, Gloo and OpenMPI against the roof (equal work on equal
// memory, without waiting). The time is that of the slowest rank. algbw is bytes over time; busbw is algbw times
// 2 (n - 1) / n, as nccl-tests define them. LOCKSTEP_BYTES and LOCKSTEP_RANKS, comma-separated lists, choose other
// sizes and numbers of ranks.
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include <comm/engine_ranks.hpp>
#include <python_peer.hpp>
#include <suite.hpp>

using namespace lockstep_bench;

namespace {

Role const engine("engine", [](std::vector<std::string> const& arguments) {
  return run_engine(arguments.at(0), std::stoi(arguments.at(1)));
});

std::vector<std::size_t> list_of(char const* variable, std::string const& usual) {
  auto const* const given = std::getenv(variable);
  std::istringstream in(given != nullptr ? given : usual);
  std::vector<std::size_t> out;
  for (std::string word; std::getline(in, word, ',');) out.push_back(std::stoull(word));
  return out;
}

PeerCommand openmpi([[maybe_unused]] std::size_t ranks) {
#if defined(LOCKSTEP_MPI_PEER)
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);  // a container's only user is root
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
  std::vector<std::string> command{"mpirun", "-np", std::to_string(ranks), "--oversubscribe"};
  if (ranks <= processor_numbers().size()) command.insert(command.end(), {"--bind-to", "core"});
  command.emplace_back(LOCKSTEP_MPI_PEER);
  return {.words = [command] { return command; }, .reason = "mpirun does not start " LOCKSTEP_MPI_PEER};
#else
  return {.words = [] { return std::vector<std::string>(); }, .reason = "there was no MPI when this was built"};
#endif
}

void add_operation(std::string const& name, PeerCommand command, std::size_t ranks, std::size_t bytes,
                   std::string const& work) {
  command.request = std::to_string(bytes) + work;
  add(name,
      [=](benchmark::State& state) {
        auto const processors = processor_numbers().size();
        if (processors < 2)
          return skip(state, std::to_string(ranks) + " ranks need 2 processors, and this process may use 1");
        if (ranks > processors)
          state.SetLabel(std::to_string(ranks) + " ranks share " + std::to_string(processors) + " processors");
        run_peer(state, command);
        set_all_reduce_bandwidths(state, bytes, ranks);
      })
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}

}  // namespace

void register_benchmarks() {
  for (auto const ranks : list_of("LOCKSTEP_RANKS", "2,4")) {
    bool const exclusive = ranks <= processor_numbers().size();
    for (auto const bytes : list_of("LOCKSTEP_BYTES", exclusive ? "1024,16384,65536,1048576,16777216,67108864,268435456"
                                                                : "1024,1048576,67108864")) {
      auto const name = "all_reduce/bytes:" + std::to_string(bytes) + "/ranks:" + std::to_string(ranks);
      for (std::string const kind : {"thread", "process"}) {
        auto const command = own_role("engine", {kind, std::to_string(ranks)});
        auto const full = name + "/engine:" + kind;
        add_operation(full, command, ranks, bytes, " sum");
        // Ranks that share a core would measure only their own time slice, so a measurement takes many slices.
        bool const many_slices = exclusive || bytes >= std::size_t{64} << 20;
        if (many_slices && (ranks == 2 || ranks == 4))  // EngineRank has no roof for others
          add_operation(full + "/peer:roof", command, ranks, bytes, " roof");
      }
      add_operation(name + "/peer:gloo", python_peer("all_reduce.py", {std::to_string(ranks)}), ranks, bytes, "");
      add_operation(name + "/peer:openmpi", openmpi(ranks), ranks, bytes, "");
      if (!exclusive || bytes > 4096) continue;
      add(name + "/peer:cache_line",
          [](benchmark::State& state) {  // a round trip between two cores
            for (auto _ : state) state.SetIterationTime(Probe::measure().round_trip_ns * 1e-9);
          })
          ->UseManualTime()
          ->Iterations(1)
          ->Unit(benchmark::kMicrosecond);
    }
  }
}
