// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <doctest/doctest.h>

#include "examples/program.hpp"

using namespace lockstep_test;

namespace {

// Contents of run.json that compare reads.
std::string run(std::string const& parallel, int ranks, double speed, double loss, std::string const& sha) {
  auto const ms = 64e3 / speed;
  return R"({"parallel": ")" + parallel + R"(", "world_size": )" + std::to_string(ranks) +
         R"(, "devices": 1, "threads": 1, "steps": 10,
    "effective_batch_size": 64, "samples_per_second": )" +
         std::to_string(speed) + R"(, "phases_ms": {"data_wait": 0, "forward": )" + std::to_string(0.3 * ms) +
         R"(, "backward": )" + std::to_string(0.6 * ms) + R"(, "communication_exposed": 0, "optimizer": )" +
         std::to_string(0.1 * ms) + R"(}, "final": {"eval_loss": )" + std::to_string(loss) +
         R"(, "eval_accuracy": 0.9}, "parameters_sha256": ")" + sha + "\"}";
}

void save_run(TemporaryFolder const& folder, std::string const& name, std::string const& json) {
  std::filesystem::create_directory(folder / name);
  save(folder, name + "/run.json", json);
}

}  // namespace

TEST_CASE("speed-up and efficiency are relative to the first run") {
  TemporaryFolder const folder;
  save_run(folder, "single", run("single", 1, 640, 0.30, "aaaa"));
  save_run(folder, "ddp", run("ddp", 2, 960, 0.31, "bbbb"));
  auto const outcome = run_example("compare", {folder / "single/", folder / "ddp"});
  CAPTURE(outcome.out);
  CHECK(outcome.exit_code == 0);
  CHECK(contains(outcome.out, "1.50"));
  CHECK(contains(outcome.out, "75 %"));
  CHECK(contains(outcome.out, "ddp and single agree"));
  CHECK(contains(outcome.out, "it is bound by compute"));
}

TEST_CASE("runs of a trainer without accuracy are compared, too") {
  TemporaryFolder const folder;
  auto json = run("single", 1, 640, 0.30, "aaaa");
  std::string const accuracy = ", \"eval_accuracy\": 0.9";
  json.erase(json.find(accuracy), accuracy.size());
  save_run(folder, "single", json);
  auto const outcome = run_example("compare", {folder / "single", folder / "single"});
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(contains(outcome.out, "100 %         -    0.3000"));
}

TEST_CASE("runs that should agree and do not are reported, and the comparison fails") {
  TemporaryFolder const folder;
  save_run(folder, "single", run("single", 1, 640, 0.30, "aaaa"));
  save_run(folder, "dp", run("dp", 2, 960, 0.30, "bbbb"));
  save_run(folder, "ddp", run("ddp", 2, 960, 0.30, "cccc"));
  save_run(folder, "far", run("ddp", 4, 960, 0.40, "dddd"));
  auto const bits = run_example("compare", {folder / "single", folder / "dp", folder / "ddp"});
  CHECK(bits.exit_code == 1);
  CHECK(contains(bits.out, "ddp and dp DISAGREE"));
  auto const loss = run_example("compare", {folder / "single", folder / "far"});
  CHECK(loss.exit_code == 1);
  CHECK(contains(loss.out, "far and single DISAGREE"));
}

TEST_CASE("runs with other settings need not agree, and their settings are reported") {
  TemporaryFolder const folder;
  auto const with = [&](std::string const& name, std::string const& settings, std::string const& sha) {
    auto json = run("ddp", 2, 960, 0.30, sha);
    json.insert(1, "\"settings\": {" + settings + "}, ");
    save_run(folder, name, json);
  };
  with("one", R"("lr": 0.001, "lr-schedule": "cosine", "threads": 1)", "aaaa");
  with("two", R"("lr": 0.002, "lr-schedule": "cosine", "threads": 2, "dropout": 0.1)", "bbbb");
  with("three", R"("lr": 0.001, "lr-schedule": "cosine", "threads": 3)", "bbbb");
  auto const other = run_example("compare", {folder / "one", folder / "two"});
  CAPTURE(other.out);
  CHECK(other.exit_code == 0);
  CHECK(contains(other.out, "two need not agree with one: it has dropout 0.1 (not given), lr 0.002 (0.001)."));
  auto const same = run_example("compare", {folder / "one", folder / "three"});
  CHECK(same.exit_code == 1);
  CHECK(contains(same.out, "three and one DISAGREE"));
  save_run(folder, "older", run("ddp", 2, 960, 0.30, "aaaa"));
  CHECK(contains(run_example("compare", {folder / "one", folder / "older"}).out, "older and one agree"));
}

TEST_CASE("an evaluation that is not a number agrees with none") {
  TemporaryFolder const folder;
  auto json = run("ddp", 2, 960, 0.30, "bbbb");
  std::string const loss = "\"eval_loss\": 0.300000";
  REQUIRE(contains(json, loss));
  json.replace(json.find(loss), loss.size(), "\"eval_loss\": null");
  save_run(folder, "single", run("single", 1, 640, 0.30, "aaaa"));
  save_run(folder, "none", json);
  auto const outcome = run_example("compare", {folder / "single", folder / "none"});
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 1);
  CHECK(contains(outcome.out, "none and single DISAGREE"));
}

TEST_CASE("--help says what compare takes and prints") {
  auto const outcome = run_example("compare", {"--help"});
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.err.empty());
  CHECK(contains(outcome.out, "compare DIR DIR…: compares runs"));
}

TEST_CASE("a file that is not a saved run is refused by name") {
  TemporaryFolder const folder;
  save_run(folder, "broken", "{\"parallel\": \"dp\",");
  save_run(folder, "short", "{\"parallel\": \"dp\"}");
  auto const check = [](std::vector<std::string> const& arguments, std::string const& message) {
    auto const outcome = run_example("compare", arguments);
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.lines_of_err() == 1);
    CHECK(contains(outcome.err, message));
  };
  check({}, "needs the directories");
  check({folder / "missing"}, "missing: there is no such directory; give the --save-dir");
  check({folder / "broken"}, "broken/run.json: line 1");
  check({folder / "short"}, "short/run.json: json: there is no member");
}
