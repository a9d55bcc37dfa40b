// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "examples/program.hpp"

using namespace lockstep_test;

namespace {

using Words = std::vector<std::string>;

/// A small text classifier's data and flags.
struct Comparison {
  TemporaryFolder folder;
  std::string data;

  Comparison() {
    std::string csv;
    for (int i = 0; i < 160; ++i)
      csv += "\"" + std::to_string(i % 4 + 1) + "\",\"title\",\"word" + std::to_string(i % 9) + " more\"\n";
    data = save(folder, "train.csv", csv);
  }
  Outcome run(Words own, std::string const& trainer) const {
    own.insert(own.end(), {trainer, "--data", data, "--d-model", "64", "--num-heads", "2", "--epochs", "1",
                           "--global-batch-size", "24"});
    return run_example("dp_vs_ddp", own);
  }
};

std::string line_of(std::string const& text, std::string const& begin) {
  auto const at = text.find("\n" + begin);
  return at == std::string::npos ? "" : text.substr(at + 1, text.find('\n', at + 1) - at - 1);
}

}  // namespace

TEST_CASE("a trainer is compared on one device, with dp and with ddp, in tables and as CSV") {
  Comparison const comparison;
  auto const& folder = comparison.folder;
  auto const outcome =
      comparison.run({"--devices", "1,2,6", "--save-dir", folder / "runs", "--csv", folder / "all.csv"},
                     example("text_classification"));
  CAPTURE(outcome.out);
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  CHECK(contains(outcome.out, "note: dp6: the first device sums all gradients"));
  CHECK_FALSE(contains(outcome.out, "note: dp2"));
  CHECK(contains(outcome.out, "[3/5] ddp2: "));
  for (auto const* name : {"single", "dp2", "ddp2", "dp6", "ddp6"}) {
    CAPTURE(name);
    CHECK(contains(line_of(outcome.out, name), " % "));
    CHECK(std::filesystem::exists(folder / ("runs/" + std::string(name) + "/run.json")));
    CHECK(contains(read_file(folder / ("runs/" + std::string(name) + ".log")), "effective batch 24"));
  }
  CHECK(contains(outcome.out, "ddp2 and dp2 agree: their parameters are equal bit for bit."));
  CHECK(contains(outcome.out, "ddp6 and dp6 agree: their parameters are equal bit for bit."));
  CHECK(contains(line_of(outcome.out, "dp2: "), "2 devices train "));  // perhaps after "more devices are slower"

  // The optimizer's moments are on the first device with dp, and on every one with ddp.
  auto const memory = outcome.out.substr(outcome.out.find("memory in MB"));
  auto const first_over_others = [&](std::string const& name) {
    std::string word;
    double ratio = 0, first = 0;
    char others[32];
    char run[32];
    CHECK(std::sscanf(line_of(memory, name).c_str(), "%31s %lf %31s %lf", run, &first, others, &ratio) == 4);
    return ratio;
  };
  CHECK(first_over_others("dp2") > 1.1);
  CHECK(first_over_others("ddp2") < 1.1);

  auto const csv = read_file(folder / "all.csv");
  CHECK(csv.starts_with("run,parallel,devices,threads,samples_per_second,"));
  CHECK(std::ranges::count(csv, '\n') == 6);
  CHECK(contains(csv, "\nddp6,ddp,6,1,"));
}

TEST_CASE("a failed run is in the tables with its message, and does not stop the comparison") {
  Comparison const comparison;
  auto const& folder = comparison.folder;
  auto const trainer = save(
      folder, "trainer",
      "#!/bin/sh\ncase \"$*\" in *'--parallel dp'*) echo 'trainer: device 1 is on fire' >&2; exit 1;; esac\nexec " +
          example("text_classification") + " \"$@\"\n");
  std::filesystem::permissions(trainer, std::filesystem::perms::owner_all);
  auto const outcome = comparison.run({"--save-dir=" + (folder / "runs"), "--csv", folder / "all.csv"}, trainer);
  CAPTURE(outcome.out);
  CHECK(outcome.exit_code == 1);
  CHECK(contains(line_of(outcome.out, "dp2"), "failed: trainer: device 1 is on fire"));
  CHECK(contains(outcome.out, "ddp2 and single agree"));
  CHECK(contains(read_file(folder / "all.csv"), "\ndp2,dp,2,,,,,,,,,,,,,,\"trainer: device 1 is on fire\"\n"));
  CHECK(contains(read_file(folder / "runs/dp2.log"), "on fire"));
}

TEST_CASE("arguments that dp_vs_ddp does not support are refused in one sentence") {
  TemporaryFolder const folder;
  auto const trainer = example("text_classification");
  auto const check = [](Words const& arguments, std::string const& message) {
    auto const outcome = run_example("dp_vs_ddp", arguments);
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.lines_of_err() == 1);
    CHECK(contains(outcome.err, message));
  };
  check({}, "needs the name of a trainer");
  check({"--devices", "1,2"}, "needs the name of a trainer");
  check({"--devices", "0", trainer}, "--devices 0: must be a whole number from 1 to 256");
  check({"no_such_trainer"}, "no_such_trainer: cannot be started");
  check({trainer, "--nproc=2"}, "--nproc=2: dp_vs_ddp sets this flag for each run");
  check({trainer, "--save_dir", "x"}, "--save_dir: dp_vs_ddp sets this flag for each run");
  check({"--save-dir", folder / "", trainer}, "exists already");
  auto const fails = run_example("dp_vs_ddp", {"--save-dir", folder / "runs", trainer, "--batch-size", "0"});
  CHECK(fails.exit_code == 2);
  CHECK(contains(fails.err, "no run succeeded; the first says: text_classification: --batch-size 0: must be"));
}
