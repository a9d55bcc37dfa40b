// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include <lockstep/core/error.hpp>
#include <lockstep/scaling/study/study.hpp>

#include "scaling/study/saved_runs.hpp"

using namespace lockstep;
using namespace lockstep_test;
using scaling::BaselineKind, scaling::Study, scaling::StudyEntry;

TEST_CASE("runs of one model, data set and batch are one group, with the baseline first") {
  TemporaryFolder const folder;
  SavedExample{}.save(folder / "one");
  SavedExample{.parallel = "ddp", .devices = 2, .speed = 1800, .sha = "b"}.save(folder / "two");
  SavedExample{.parallel = "dp", .devices = 2, .speed = 1500, .communication_ms = 2, .sha = "b"}.save(folder / "three");
  SavedExample{.batch = 64, .speed = 1200}.save(folder / "large");
  auto const study = Study::read({folder / ""});
  REQUIRE(study.groups.size() == 2);
  CHECK(study.run_count() == 4);
  auto const& group = study.groups[0];
  CHECK(group.slug == "toy_batch32");
  CHECK(study.groups[1].slug == "toy_batch64");
  CHECK(group.title == "toy, batch 32");
  CHECK(group.baseline_kind == BaselineKind::measured);
  REQUIRE(group.configurations.size() == 3);
  CHECK(group.configurations[0].label() == "single");
  CHECK(group.configurations[1].label() == "dp 2");
  CHECK(group.configurations[2].label() == "ddp 2");
  CHECK(group.configurations[2].speed_up.mean == doctest::Approx(1.8));
  CHECK(group.configurations[2].efficiency.mean == doctest::Approx(0.9));
  CHECK(group.parameters_equal(2) == "equal");
  CHECK(group.parameters_equal(4) == "n/a");
  CHECK(group.summary() ==
        "toy, batch 32: ddp 2 is fastest with 1800.0 samples/s, 1.80 times the speed of one device "
        "and 90 % of ideal.");
  CHECK(group.curve.size() == 11);
  CHECK(group.curve.back().ranks == 1024);
  CHECK(study.notes[0].find("in 2 groups") != std::string::npos);

  // Predicted rows for 8 devices: both policies scale worse than ideal, and dp's first device sums one after another.
  auto const *dp = group.find("dp", 8), *ddp = group.find("ddp", 8);
  REQUIRE(dp);
  REQUIRE(ddp);
  CHECK(dp->predicted);
  CHECK(ddp->speed_up.mean > 1.8);
  CHECK(ddp->speed_up.mean < 8);
  CHECK(dp->profile.communication_ms == doctest::Approx(7 * 2));
  CHECK(dp->first_device_bytes == 12e6);
}

TEST_CASE("more devices that are slower are called negative scaling") {
  TemporaryFolder const folder;
  SavedExample{}.save(folder / "one");
  SavedExample{.parallel = "ddp", .devices = 4, .speed = 460}.save(folder / "four");
  auto const study = Study::read({folder / ""});
  CHECK(study.groups[0].summary() ==
        "toy: negative scaling. No run on several devices is faster than single (1000.0 samples/s); the best, ddp 4, "
        "has 0.46 times its speed.");
}

TEST_CASE("without a run on one device, a predicted baseline is used and named") {
  TemporaryFolder const folder;
  SavedExample{.parallel = "ddp", .devices = 2, .speed = 1800, .communication_ms = 5}.save(folder / "two");
  auto const study = Study::read({folder / ""});
  auto const& group = study.groups[0];
  CHECK(group.baseline_kind == BaselineKind::predicted);
  CHECK(group.baseline.predicted);
  // A step of 64 samples takes 35.6 ms, 5 of them for communication, which one device does not need.
  CHECK(group.baseline.samples_per_second.mean == doctest::Approx(32 / (64.0 / 1800 - 0.005)).epsilon(0.001));
  CHECK(group.configurations[0].speed_up.mean ==
        doctest::Approx(1800 / group.baseline.samples_per_second.mean).epsilon(0.001));
  CHECK(group.baseline_summary().find("relative to a prediction") != std::string::npos);
  CHECK(group.summary().find("one device as predicted") != std::string::npos);
}

TEST_CASE("failed and unreadable runs are kept with their reason, failed ones also in their group") {
  TemporaryFolder const folder;
  SavedExample{}.save(folder / "one");
  SavedExample{.parallel = "dp", .devices = 2}.save(folder / "broken");
  write_file(folder / "broken/run.json", "{\"parallel\": \"dp\",");
  StudyEntry entry{.name = "toy-dp4", .example = "toy", .parallel = "dp", .devices = 4};
  entry.state = StudyEntry::State::failed;
  entry.message = "device 3 is on fire";
  write_file(folder / "toy-dp4.entry.json", entry.json());
  entry.name = "toy-dp8";
  entry.state = StudyEntry::State::running;
  write_file(folder / "toy-dp8.entry.json", entry.json());
  auto const study = Study::read({folder / ""});
  REQUIRE(study.missing.size() == 3);
  CHECK(study.missing[0].reason.find("unreadable: ") == 0);
  CHECK(study.missing[1].failed);
  CHECK(study.missing[1].reason == "device 3 is on fire");
  CHECK(study.missing[2].reason == "not started, or not finished");
  auto const* const failed = study.groups[0].find("dp", 4);
  REQUIRE(failed);
  CHECK(failed->failed == 1);
  CHECK_FALSE(failed->has_speed());
  CHECK(failed->message == "device 3 is on fire");
}

TEST_CASE("only runs of the wanted data sets are read") {
  TemporaryFolder const folder;
  SavedExample{.data = "imdb.csv"}.save(folder / "a");
  SavedExample{.data = "ag_news/train.csv"}.save(folder / "b");
  auto const study = Study::read({folder / ""}, {.datasets = {"ag_news"}});
  REQUIRE(study.groups.size() == 1);
  CHECK(study.groups[0].dataset == "ag_news");
  CHECK_THROWS_WITH_AS(Study::read({folder / ""}, {.datasets = {"ag_new"}}),
                       "--datasets ag_new: no run has this data set; the nearest is ag_news", ConfigError);
}

TEST_CASE("repeats with one seed that end with other parameters differ") {
  TemporaryFolder const folder;
  SavedExample{.parallel = "dp", .devices = 2, .sha = "a"}.save(folder / "a");
  SavedExample{.parallel = "ddp", .devices = 2, .sha = "b"}.save(folder / "b");
  CHECK(Study::read({folder / ""}).groups[0].parameters_equal(2) == "differ");
  SavedExample{.parallel = "ddp", .devices = 2, .seed = 2, .sha = "b"}.save(folder / "b");
  CHECK(Study::read({folder / ""}).groups[0].parameters_equal(2) == "n/a");
}
