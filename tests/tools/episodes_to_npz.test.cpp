// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdint>
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

Outcome run_python(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"/usr/bin/env", python()});
  auto const file = arguments.front();
  arguments.erase(arguments.begin());
  return Program(file, arguments).wait(120);
}
Outcome convert(std::string const& source, std::string const& folder, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {LOCKSTEP_SOURCE_DIR "/tools/episodes_to_npz.py", source, folder});
  return run_python(more);
}

/// Episodes of 3 and 2 steps: states 10 e + t and its negative, action t + e, reward 1 for each step.
std::string const made = R"(
import pickle, sys, numpy
folder = sys.argv[1]
def episode(e, steps, more):
    t = numpy.arange(steps + more)
    return {"observations": numpy.stack([10.0 * e + t, -10.0 * e - t], 1), "actions": (t + e)[:steps],
            "rewards": numpy.ones(steps), "terminations": numpy.arange(steps) == steps - 1}
lists = [episode(0, 3, 1), episode(1, 2, 1)]
flat = {name: numpy.concatenate([episode(e, n, 0)[name] for e, n in ((0, 3), (1, 2))]) for name in lists[0]}
timed = dict(flat, terminations=numpy.zeros(5, bool), timeouts=numpy.array([0, 0, 1, 0, 0], bool))
mixed = [dict(obs={"b": -e["observations"][:, :1], "a": e["observations"][:, :1]}, action=e["actions"], reward=e["rewards"])
         for e in lists]
for name, value in dict(list=lists, flat=flat, timed=timed, mixed=mixed, named={"x": lists[0], "y": lists[1]}).items():
    pickle.dump(value, open(f"{folder}/{name}.pkl", "wb"))
numpy.savez(f"{folder}/flat.npz", **flat)
numpy.save(f"{folder}/list.npy", numpy.array(lists, dtype=object), allow_pickle=True)
short = dict(lists[0], rewards=numpy.ones(2))
pickle.dump([lists[1], short], open(f"{folder}/unequal.pkl", "wb"))
pickle.dump([lists[1], {"observations": [1.0]}], open(f"{folder}/lacking.pkl", "wb"))
pickle.dump([1, 2], open(f"{folder}/numbers.pkl", "wb"))
open(f"{folder}/foreign.pkl", "wb").write(b"cno_such_module\nThing\n.")
)";

void check(std::string const& folder) {
  Episodes const episodes(folder, BadEpisodes::refuse);
  REQUIRE(episodes.size() == 2);
  for (Index e = 0; e < 2; ++e) {
    auto const steps = episodes.steps(e);
    REQUIRE(steps == 3 - e);
    auto const part = episodes.read(e, 0, steps, 100);
    for (Index t = 0; t < steps; ++t) {
      auto const at = static_cast<std::size_t>(t);
      CHECK(part.states[2 * at] == static_cast<float>(10 * e + t));
      CHECK(part.states[2 * at + 1] == static_cast<float>(-10 * e - t));
      CHECK(part.actions[at] == t + e);
      CHECK(part.rewards[at] == 1);
    }
  }
}

}  // namespace

TEST_CASE("episodes in the formats of Gymnasium, D4RL and Minari become files that the trainer reads") {
  if (!has_python_module("numpy")) return;
  TemporaryFolder const folder;
  REQUIRE(run_python({"-c", made, folder.path().string()}).exit_code == 0);
  for (std::string const source :
       {"list.pkl", "flat.pkl", "timed.pkl", "mixed.pkl", "named.pkl", "flat.npz", "list.npy"}) {
    CAPTURE(source);
    auto const joined = convert(folder / source, folder / ("joined_" + source));
    CAPTURE(joined.err);
    REQUIRE(joined.exit_code == 0);
    CHECK(contains(joined.out, "2 episodes, 5 steps, returns from 2 to 3, mean 2.5"));
    check(folder / ("joined_" + source));
    REQUIRE(convert(folder / source, folder / ("apart_" + source), {"--per-episode"}).exit_code == 0);
    CHECK(std::filesystem::exists(folder / ("apart_" + source + "/episode_1.npz")));
    check(folder / ("apart_" + source));
  }
  struct Refusal {
    char const* source;
    char const* message;
  };
  for (auto const& [source, message] :
       {Refusal{"unequal.pkl", "episode 1: arrays of unequal lengths"},
        Refusal{"lacking.pkl", "episode 1: has no actions among observations"},
        Refusal{"numbers.pkl", "neither a list of episodes"}, Refusal{"missing.pkl", "no such file"},
        Refusal{"foreign.pkl", "foreign.pkl: cannot be converted: No module named"}}) {
    auto const outcome = convert(folder / source, folder / "refused");
    CHECK(outcome.exit_code == 1);
    CHECK(outcome.lines_of_err() == 1);
    CHECK(contains(outcome.err, message));
    CHECK_FALSE(std::filesystem::exists(folder / "refused"));
  }
  auto const again = convert(folder / "list.pkl", folder / "joined_list.pkl");
  CHECK(again.exit_code == 1);
  CHECK(contains(again.err, "is not empty"));
  for (std::string const text : {"text\n", ""}) {
    write_file(folder / "table.csv", text);
    auto const other = convert(folder / "table.csv", folder / "refused");
    CHECK(other.exit_code == 1);
    CHECK(other.lines_of_err() == 1);
    CHECK(contains(other.err, "table.csv: cannot be converted: "));
  }
}

TEST_CASE("episodes of an HDF5 file, flat or in groups") {
  if (!has_python_module("numpy") || !has_python_module("h5py")) return;
  TemporaryFolder const folder;
  auto const code = made + R"(
import h5py
with h5py.File(f"{folder}/flat.hdf5", "w") as file:
    for name, value in flat.items(): file[name] = value
with h5py.File(f"{folder}/groups.hdf5", "w") as file:
    for number, each in enumerate(lists):
        for name, value in each.items(): file[f"episode_{number}/{name}"] = value
)";
  REQUIRE(run_python({"-c", code, folder.path().string()}).exit_code == 0);
  for (std::string const source : {"flat", "groups"}) {
    auto const outcome = convert(folder / (source + ".hdf5"), folder / source);
    CAPTURE(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    check(folder / source);
  }
}
