// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/app/study_plan.hpp>
#include <lockstep/core/error.hpp>

#include "temporary_folder.hpp"

using namespace lockstep;
using namespace lockstep_test;
using app::StudyPlan, app::StudyTrial, app::TrainerProgram, scaling::StudyEntry;

namespace {
std::string words_of(StudyEntry const& entry) {
  std::string text;
  for (auto const& word : entry.command) text += (text.empty() ? "" : " ") + word;
  return text;
}
}  // namespace

TEST_CASE("a plan has each policy, number of devices, batch size, data set and repeat once") {
  TrainerProgram const trainer({"/bin/true", "--epochs", "1"}, "study", {});
  StudyPlan plan{.devices = {4, 1, 2, 2},
                 .batch_sizes = {16, 32, 16},
                 .data = {"a.csv", "x/b/train.csv", "a.csv"},
                 .repeat = 3,
                 .save_dir = "runs"};
  auto const all = plan.entries(trainer, 8);
  CHECK(all.size() == 3 * 2 * 2 * 5);
  CHECK(all[0].name == "a-b16-single-r1");
  CHECK(all[4].name == "a-b16-ddp4-r1");
  CHECK(words_of(all[4]) ==
        "/bin/true --epochs 1 --threads 2 --batch-size 16 --data a.csv --seed 1 --parallel ddp --nproc 4 --save-dir "
        "runs/a-b16-ddp4-r1");
  CHECK(words_of(all[3]).find("--parallel dp --devices 4") != std::string::npos);
  CHECK(all.back().name == "b-b32-ddp4-r3");
  CHECK(all.back().repeat == 3);
}

TEST_CASE("without a single device, dp and ddp run on one; the trainer's own threads and seed are kept") {
  TrainerProgram const trainer({"/bin/true", "--threads", "3", "--seed=9"}, "study", {});
  StudyPlan plan{.devices = {1, 2}, .parallel = {"ddp"}, .repeat = 2, .save_dir = "runs"};
  auto const all = plan.entries(trainer, 8);
  REQUIRE(all.size() == 4);
  CHECK(words_of(all[0]) == "/bin/true --threads 3 --seed=9 --parallel ddp --save-dir runs/true-ddp1-r1");
  StudyPlan const same{.data = {"x/train.csv", "y/x/train.csv"}, .save_dir = "runs"};
  auto const names = same.entries(trainer, 8);
  CHECK(names[0].name == "x-single");
  CHECK(names.back().name == "x_2-ddp2");
  StudyPlan const files{.data = {"files:a/b=1", "files:a/b=2"}, .save_dir = "runs"};
  CHECK(files.entries(trainer, 8).front().name == "a_b-single");
  CHECK(files.entries(trainer, 8).back().name == "a_b_2-ddp2");  // one folder below runs
}

TEST_CASE("the time of a run follows from a short run, the epochs and the processors") {
  StudyTrial trial{.samples_per_second = 100, .start_seconds = 2, .evaluation_seconds = 1};
  CHECK(trial.read_dry_run("dry run: 2000 samples, 63 steps an epoch, 630 in all; 9.9 MB", 32));
  CHECK(trial.samples == 20000);
  CHECK(trial.epochs == 10);
  CHECK_FALSE(trial.read_dry_run("nothing was trained", 32));
  StudyEntry entry{.name = "a", .example = "b", .parallel = "single"};
  entry.processors = 2;
  CHECK(StudyPlan::seconds_of(entry, trial, 1) == doctest::Approx(2 + 200 + 10));
  entry.devices = 4;  // on two processors
  CHECK(StudyPlan::seconds_of(entry, trial, 1) == doctest::Approx(2 + 100 + 5));
  trial.counts_steps = true;
  CHECK(trial.read_dry_run("dry run: 2000 samples, 63 steps an epoch, 50 in all", 32));
  CHECK(trial.samples == 1600);
  CHECK(StudyPlan::seconds_of(entry, trial, 1) == doctest::Approx(2 + 1600 * 4 / 200.0 + 0.5));
  CHECK(app::duration(0.2) == "1 s");
  CHECK(app::duration(100) == "2 min");
  CHECK(app::duration(9000) == "2.5 h");
}

TEST_CASE("finished runs of a study are kept, and runs with other flags are refused") {
  TemporaryFolder const folder;
  TrainerProgram const trainer({"/bin/true", "--lr", "0.1"}, "study", {});
  StudyPlan plan{.save_dir = folder / ""};
  auto entry = plan.entries(trainer, 2)[0];
  auto const run = folder / entry.name;
  CHECK(app::find_earlier_run(entry, folder / "") == app::StudyState::missing);
  std::filesystem::create_directories(run);
  CHECK_THROWS_WITH_AS(app::find_earlier_run(entry, folder / ""), doctest::Contains("is not of a study"), ConfigError);

  auto saved = entry;
  saved.state = StudyEntry::State::finished;
  saved.seconds = 12;
  write_file(run + ".entry.json", saved.json());
  CHECK(app::find_earlier_run(entry, folder / "") == app::StudyState::missing);  // without run.json
  write_file(run + "/run.json", "{}");
  CHECK(app::find_earlier_run(entry, folder / "") == app::StudyState::finished);
  CHECK(entry.seconds == 12);
  saved.state = StudyEntry::State::failed;
  write_file(run + ".entry.json", saved.json());
  CHECK(app::find_earlier_run(entry, folder / "") == app::StudyState::missing);

  TrainerProgram const other({"/bin/true", "--lr", "0.2"}, "study", {});
  auto changed = plan.entries(other, 2)[0];
  CHECK_THROWS_WITH_AS(app::find_earlier_run(changed, folder / ""),
                       doctest::Contains("holds a run with other flags, \"0.1\" instead of \"0.2\""), ConfigError);
}
