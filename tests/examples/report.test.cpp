// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include <lockstep/core/processors.hpp>
#include <lockstep/scaling/machine_ceiling.hpp>
#include <lockstep/train/logs/run_json.hpp>

#include "examples/program.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

std::string saved_run(TemporaryFolder const& folder, std::string const& backend = "host") {
  train::RunRecord r;
  r.parallel = "single";
  r.effective_batch_size = 32;
  r.parameters = 1000000;
  r.steps = 10;
  r.samples = 320;
  r.training_seconds = 1;
  r.step_seconds = {0.1};
  r.phases = {.forward = 0.3, .backward = 0.6, .optimizer = 0.1};
  r.session.buckets = {{2000000, 0.06}, {2000000, 0.09}};
  std::filesystem::create_directory(folder / "run");
  save(folder, "run/run.json",
       train::run_json(r, {.example = "toy", .backend = backend, .summary = "the run is bound by compute"}));
  return folder / "run";
}

}  // namespace

TEST_CASE("the report of a saved run names the bottleneck and predicts more ranks, marked as predicted") {
  TemporaryFolder const folder;
  auto const directory = saved_run(folder);
  auto const outcome = run_example("report", {directory});
  CAPTURE(outcome.out);
  CHECK(outcome.exit_code == 0);
  CHECK(contains(outcome.out, "measured: 320.0 samples/s"));
  CHECK(contains(outcome.out, "the run is bound by compute"));
  CHECK(contains(outcome.out, "predicted, none of it measured"));
  CHECK(contains(outcome.out, "\n      1024 "));
  auto const slow = run_example(
      "report", {directory, "--ranks", "3,12", "--alpha-us", "1000", "--beta-gb-s", "0.01", "--all-reduce", "ring"});
  CHECK(contains(slow.out, "\n         3 "));
  CHECK_FALSE(contains(slow.out, "\n         2 "));
  CHECK(contains(slow.out, "because of: communication"));
}

TEST_CASE("a GPU run is predicted with the link given by flags, or with an assumed link, which is stated") {
  TemporaryFolder const folder;
  auto const directory = saved_run(folder, "cuda");
  auto const assumed = run_example("report", {directory});
  CHECK(contains(assumed.out, "5.0 us and 31.500 GB/s"));
  CHECK(contains(assumed.out, "are assumed, as of PCIe 4.0"));
  auto const given = run_example("report", {directory, "--link", "nvlink_4", "--alpha-us", "3"});
  CHECK(contains(given.out, "3.0 us and 450.000 GB/s"));
  CHECK_FALSE(contains(given.out, "assumed"));
}

TEST_CASE("ranks on this machine are predicted with its stored ceiling") {
  TemporaryFolder const folder;
  scaling::MachineCeiling ceiling{.cores = processors(), .points = {{1, 1, 1}}};
  if (ceiling.cores > 1) ceiling.points.push_back({ceiling.cores, 2, 2});
  std::filesystem::create_directory(folder / "lockstep");
  save(folder, "lockstep/" + scaling::MachineCeiling::file_name(), ceiling.json());
  std::filesystem::permissions(folder / ("lockstep/" + scaling::MachineCeiling::file_name()),
                               std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  REQUIRE(::setenv("XDG_CACHE_HOME", folder.path().c_str(), 1) == 0);
  auto const outcome = run_example("report", {saved_run(folder), "--this-machine"});
  ::unsetenv("XDG_CACHE_HOME");
  CAPTURE(outcome.out);
  CHECK(contains(outcome.out, "on the " + std::to_string(ceiling.cores) + " cores of this machine"));
  CHECK_FALSE(contains(outcome.out, "it is rough"));
  if (ceiling.cores == 2) CHECK(contains(outcome.out, "\n         2         320.0        50 %"));
}

TEST_CASE("arguments that report does not support are refused in one sentence") {
  TemporaryFolder const folder;
  auto const directory = saved_run(folder);
  auto const check = [](std::vector<std::string> const& arguments, std::string const& message) {
    auto const outcome = run_example("report", arguments);
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.lines_of_err() == 1);
    CHECK(contains(outcome.err, message));
  };
  check({}, "needs the directory of a run");
  check({"--ranks", "2"}, "needs the directory of a run");
  check({folder / "missing"}, "missing: there is no such directory; give the --save-dir");
  check({directory, "--ranks", "1"}, "--ranks 1: must be a whole number from 2");
  check({directory, "--ranks", "2,,3"}, "--ranks '': must be");
  check({directory, "--beta-gb-s", "0"}, "--beta-gb-s 0: must be a number from");
  check({directory, "--all-reduce", "star"}, "must be one of fastest, ring, tree");
  check({directory, "--alpha", "1"}, "unknown flag --alpha; the nearest is --alpha-us");
}
