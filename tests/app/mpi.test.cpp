// SPDX-License-Identifier: Apache-2.0
// A trainer whose ranks MPI connects, under a real mpirun.
#include <lockstep/app/run.hpp>

#include <sys/wait.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/core/mix.hpp>
#include <lockstep/nn/module/initialize.hpp>
#include <lockstep/optim/sgd.hpp>

#include "parallel/table_model.hpp"
#include "temporary_folder.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

void check(app::Options const&) {}

/// Returns the parameters after three steps of a small model whose gradients are sent in 16 bits.
std::string trained(comm::AnyCommunicator communicator) {
  table_model::Model model(300, nn::GradientForm::by_rows);
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<float> values(static_cast<std::size_t>(layout.size()));
  nn::initialize(layout, 1, values.data());
  parallel::DistributedDataParallel policy{std::move(communicator),       256,   1,
                                           parallel::BufferPolicy::first, false, parallel::WireFormat::bfloat16};
  decltype(policy)::Session<table_model::Model, optim::SGD> session(policy, model, layout, values);
  for (std::uint64_t step = 1; step <= 3; ++step) {
    table_model::Batch batch;
    for (std::uint64_t k = 0; k < 50; ++k)
      batch.ids.push_back(
          static_cast<std::int32_t>(mix(step, static_cast<std::uint64_t>(policy.first_shard()), k) % 300));
    session.micro_step(std::span<table_model::Batch const>(&batch, 1), {.key = 1});
    session.update(optim::SGD{}, {.step = static_cast<Index>(step), .learning_rate = 0.1});
  }
  return train::parameters_sha256(layout, session.values());
}

/// Adds the ranks' numbers, trains, and writes the results.
int add_up(app::Training<app::Options>& training) {
  auto communicator = app::detail::connect(training.world());
  std::vector<double> sum(1, training.world().rank + 1);
  comm::CollectiveOperation operation;
  operation.type = ElementType::float64;
  operation.data = sum.data();
  operation.count = 1;
  communicator.start(operation);
  communicator.finish();
  auto const name = std::string(communicator.name());
  auto const sha256 = trained(std::move(communicator));
  if (training.is_main_rank())
    write_file(std::string(std::getenv("LOCKSTEP_TEST_OUT")),
               name + " " + std::to_string(static_cast<int>(sum[0])) + " " + sha256);
  return 0;
}

/// Runs this program's hidden case on three ranks that each see a different host, and returns their results.
std::string under_mpirun(std::string const& flags, int& code) {
  TemporaryFolder const folder;
  auto const program = std::filesystem::read_symlink("/proc/self/exe").string();
  auto const command =
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 LOCKSTEP_TEST_OUT=" + (folder / "out") +
      " LOCKSTEP_TEST_FLAGS='" + flags +
      "' mpirun.openmpi --oversubscribe -n 3 env OMPI_COMM_WORLD_LOCAL_RANK=0 "
      "OMPI_COMM_WORLD_LOCAL_SIZE=1 '" +
      program + "' '--test-case=rank: adds up' --no-skip=true >/dev/null 2>" + (folder / "err");
  auto const status = std::system(command.c_str());
  code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return code == 0 ? read_file(folder / "out") : read_file(folder / "err");
}

}  // namespace

TEST_CASE("rank: adds up" * doctest::skip()) {
  auto const* const flags = std::getenv("LOCKSTEP_TEST_FLAGS");
  if (!flags) return;
  std::string engine = flags, name = "--engine", program = "program";
  std::vector<char*> argv{program.data(), name.data(), engine.data()};
  std::_Exit(app::run(3, argv.data(), check, add_up));
}

TEST_CASE("ranks on several hosts are connected by MPI only") {
  int code = 0;
  std::string by_threads;
  launch::run({.threads = 3}, [&](launch::World& world) {
    auto const sha256 = trained(comm::connect(world));
    if (world.rank == 0) by_threads = sha256;
    return 0;
  });
  CHECK(by_threads.size() == 64);
  CHECK(under_mpirun("mpi", code) == "mpi 6 " + by_threads);
  CHECK(code == 0);
  CHECK(under_mpirun("process", code).find("on several hosts, but the engine process works on one host only") !=
        std::string::npos);
  CHECK(code == 2);
}
