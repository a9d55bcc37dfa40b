// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "../examples/trajectory_transformer/episodes.hpp"
#include "examples/program.hpp"
#include "python.hpp"
#include "temporary_folder.hpp"

using namespace lockstep;
using namespace lockstep_test;
using trajectory_transformer::BadEpisodes;
using trajectory_transformer::Episodes;

namespace {

Outcome run_tool(std::string const& tool, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {python(), LOCKSTEP_SOURCE_DIR "/tools/" + tool});
  return Program("/usr/bin/env", arguments).wait(120);
}

}  // namespace

TEST_CASE("episodes of a simulator are recorded again bit-identically, trained on, and played") {
  if (!has_python_module("numpy") || !has_python_module("gymnasium")) return;
  TemporaryFolder const folder;
  for (std::string const simulator : {"CartPole-v1", "Pendulum-v1"}) {
    auto const data = folder / simulator;
    for (auto const& name : {data, data + "-again"}) {
      auto const recorded = run_tool("record_episodes.py", {simulator, name, "--episodes", "6", "--random", "0,0.5,1"});
      CAPTURE(recorded.err);
      REQUIRE(recorded.exit_code == 0);
      CHECK(contains(recorded.out, ": 6 episodes, "));
    }
    for (auto const* const file : {"observations", "actions", "rewards", "terminals", "episode_lengths"})
      CHECK(read_file(data + "/" + file + ".npy") == read_file(data + "-again/" + file + ".npy"));
    Episodes const episodes(data, BadEpisodes::refuse);
    CHECK(episodes.size() == 6);
    CHECK(episodes.state_width() == (simulator == "CartPole-v1" ? 4 : 3));
    CHECK(episodes.control_width() == (simulator == "CartPole-v1" ? 0 : 1));

    auto const save_dir = folder / (simulator + "-run");
    auto const trained = run_example("trajectory_transformer",
                                     {"--data", data, "--save-dir", save_dir, "--epochs", "1", "--threads", "1",
                                      "--d-model", "16", "--num-heads", "2", "--num-layers", "1", "--max-length", "5"});
    CAPTURE(trained.err);
    REQUIRE(trained.exit_code == 0);
    std::string parameters;
    for (auto const& entry : std::filesystem::directory_iterator(save_dir + "/checkpoints"))
      parameters = entry.path().string();
    auto const played = run_tool("play_episodes.py", {simulator, parameters, "--returns", "10,200", "--episodes", "1",
                                                      "--data", data, "--program", example("trajectory_player")});
    CAPTURE(played.err);
    CHECK(played.exit_code == 0);
    CHECK(std::ranges::count(played.out, '\n') == 4);
    CHECK(contains(played.out, "recorded,,"));
    CHECK(contains(played.out, "model,200,"));
  }
  auto const refused = run_tool("record_episodes.py", {"CartPole-v1", folder / "none", "--random", "2"});
  CHECK(refused.exit_code == 1);
  CHECK(contains(refused.err, "from 0 to 1"));
}
