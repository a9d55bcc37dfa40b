// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/core/clock.hpp>
#include <lockstep/core/json.hpp>

#include "examples/program.hpp"
#include "python.hpp"
#include "skip.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

using Words = std::vector<std::string>;

std::string script(std::string const& name) { return std::string(LOCKSTEP_SOURCE_DIR) + "/examples/launch/" + name; }

/// Returns a PATH whose first nvidia-smi runs the shell command `does`.
std::string with_gpus(TemporaryFolder const& folder, std::string const& does) {
  auto const file = save(folder, "nvidia-smi", "#!/bin/sh\n" + does + "\n");
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  return std::filesystem::path(file).parent_path().string() + ":" + std::getenv("PATH");
}
std::string without_gpus(TemporaryFolder const& folder) { return with_gpus(folder, "exit 9"); }

bool runs(std::string const& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

struct Training {
  TemporaryFolder folder;
  std::string data;
  int count = 0;

  Training() {
    std::string csv;
    for (int i = 0; i < 120; ++i)
      csv += "\"" + std::to_string(i % 4 + 1) + "\",\"title\",\"word" + std::to_string(i % 9) + " more\"\n";
    data = save(folder, "train.csv", csv);
  }

  /// Starts the example with `launcher`, which may be empty, and returns its exit code and saved files.
  std::string sha256(Words launcher, Words const& flags, std::string const& engine = "") {
    auto const directory = folder / std::to_string(count++);
    launcher.push_back(example("text_classification"));
    launcher.insert(launcher.end(), flags.begin(), flags.end());
    for (auto const& word : {"--data", data.c_str(), "--save-dir", directory.c_str(), "--d-model", "16", "--num-heads",
                             "2", "--epochs", "1", "--global-batch-size", "12", "--threads", "1"})
      launcher.emplace_back(word);
    auto const outcome = Program("/usr/bin/env", launcher).wait(120);
    CAPTURE(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    auto const run = json::parse(read_file(directory + "/run.json"), "run.json");
    CHECK(run.at("world_size").integer() == 2);
    if (!engine.empty()) CHECK(run.at("engine").string() == engine);
    return run.at("parameters_sha256").string();
  }
};

}  // namespace

TEST_CASE("two ranks train with equal bits under every launcher") {
  Training training;
  auto const ours = training.sha256({}, {"--nproc", "2"});
  CHECK(training.sha256({}, {"--parallel", "ddp", "--devices", "2"}) == ours);
  CHECK(training.sha256({"PATH=" + without_gpus(training.folder), script("gpus.sh"), "2"}, {}) == ours);
  REQUIRE(runs("mpirun.openmpi --version"));
  Words const as_root{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"};
  auto mpirun = as_root;
  mpirun.insert(mpirun.end(), {"mpirun.openmpi", "--oversubscribe", "-n", "2"});
  CHECK(training.sha256(mpirun, {}) == ours);
  auto by_mpi = as_root;
  by_mpi.push_back("ASAN_OPTIONS=detect_leaks=0");  // Open MPI leaks
  by_mpi.insert(by_mpi.end(), {"MPIRUN=mpirun.openmpi --oversubscribe", script("mpirun.sh"), "2"});
  CHECK(training.sha256(by_mpi, {}, "mpi") == ours);

  auto const& python = lockstep_test::python();
  if (!runs(python + " -c 'import torch'")) return skip(Need::torch, "torchrun and torch.distributed.launch");
  auto const path = std::filesystem::path(python).parent_path().string() + ":" + std::getenv("PATH");
  CHECK(training.sha256({"PYTHON=" + python, script("torch_distributed_launch.sh"), "2"}, {}) == ours);
  if (runs("PATH='" + path + "' torchrun --help"))
    CHECK(training.sha256({"PATH=" + path, script("torchrun.sh"), "2"}, {}) == ours);
  else
    CHECK(training.sha256(
              {python, "-m", "torch.distributed.run", "--no-python", "--standalone", "--nproc-per-node", "2"}, {}) ==
          ours);
}

TEST_CASE("the script for GPUs lists them, and passes the first N to the trainer") {
  TemporaryFolder const folder;
  auto const path = with_gpus(folder, "echo 'GPU 0: First (UUID: a)'; echo 'GPU 1: Second (UUID: b)'");
  auto const run = [&](Words const& count) {
    Words words{"PATH=" + path, script("gpus.sh")};
    words.insert(words.end(), count.begin(), count.end());
    words.insert(words.end(), {"/bin/echo", "trainer", "--epochs", "3"});
    return Program("/usr/bin/env", words).wait(60);
  };
  auto const all = run({"all"});
  CHECK(all.exit_code == 0);
  CHECK(contains(all.out, "2 GPUs:\n  GPU 0: First (UUID: a)\n  GPU 1: Second (UUID: b)\n"));
  CHECK(contains(all.out, "trainer --epochs 3 --backend cuda --parallel ddp --nproc 2 --gpu-ids 0,1"));
  CHECK(contains(run({"1"}).out, "--nproc 1 --gpu-ids 0\n"));
  auto const many = run({"3"});
  CHECK(many.exit_code == 2);
  CHECK(contains(many.err, "3 GPUs are asked for, and there are 2"));
  CHECK(run({"0"}).exit_code == 2);
}

TEST_CASE("a rank without an error of its own gives rank zero time to report one") {
  auto const began = Clock::seconds();
  auto const outcome =
      Program("/usr/bin/env", {"RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=localhost",
                               "MASTER_PORT=1", example("text_classification"), "--batch-size", "0"})
          .wait(60);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.err.empty());
  CHECK(Clock::seconds() - began >= 1);
}

TEST_CASE("invalid input under a launcher causes one sentence") {
  REQUIRE(runs("mpirun.openmpi --version"));
  auto const outcome =
      Program("/usr/bin/env", {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "mpirun.openmpi",
                               "--oversubscribe", "-n", "2", example("text_classification"), "--batch-size", "0"})
          .wait(60);
  CHECK(outcome.exit_code == 2);
  auto const sentence = outcome.err.find("text_classification: --batch-size");
  CHECK(sentence != std::string::npos);
  CHECK(outcome.err.find("text_classification: ", sentence + 1) == std::string::npos);
}
