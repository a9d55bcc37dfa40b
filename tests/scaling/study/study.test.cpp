// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include <lockstep/core/error.hpp>
#include <lockstep/scaling/prediction.hpp>
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

TEST_CASE("a run that two roots contain is read once, also if they are written in different ways") {
  TemporaryFolder const folder;
  SavedExample{}.save(folder / "runs/one");
  StudyEntry entry{.name = "one", .example = "toy", .parallel = "single", .devices = 1};
  entry.state = StudyEntry::State::finished;
  write_file(folder / "runs/one.entry.json", entry.json());
  auto const study = Study::read({folder / "runs/../runs/one", folder / "runs"});
  CHECK(study.run_count() == 1);
  CHECK(study.missing.empty());
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

TEST_CASE("repeats whose seeds give other numbers of parameters are one group, other models are not") {
  TemporaryFolder const folder;
  SavedExample{.parameters = 900}.save(folder / "a");
  SavedExample{.seed = 2, .parameters = 950}.save(folder / "b");
  auto study = Study::read({folder / ""});
  REQUIRE(study.groups.size() == 1);
  CHECK(study.groups[0].configurations[0].runs.size() == 2);
  CHECK(study.groups[0].description == "toy, 900 to 950 parameters, batch 32 per device");
  SavedExample{.parallel = "ddp", .devices = 2, .parameters = 1000}.save(folder / "c");
  study = Study::read({folder / ""});
  REQUIRE(study.groups.size() == 3);
  CHECK(study.groups[1].apart == "parameters 950 (900)");
}

TEST_CASE("predictions continue the mean of the repeats on one device") {
  TemporaryFolder const folder;
  SavedExample{.speed = 800}.save(folder / "a");
  SavedExample{.speed = 1000, .seed = 2}.save(folder / "b");
  SavedExample{.speed = 1200, .seed = 3}.save(folder / "c");
  auto const study = Study::read({folder / ""});
  auto const& group = study.groups[0];
  CHECK(group.curve[0].samples_per_second == doctest::Approx(1000));
  for (auto const& size : group.curve) {
    CHECK(size.samples_per_second <= 1000 * static_cast<double>(size.ranks) * (1 + 1e-9));
    if (size.ranks == 8) CHECK(size.samples_per_second == doctest::Approx(group.find("ddp", 8)->speed_up.mean * 1000));
  }
  auto const& baseline = group.configurations[0].speed_up;
  CHECK(baseline.mean == 1);
  CHECK(baseline.count == 1);  // by definition: no deviation
}

TEST_CASE("the loader of dp limits its prediction only as far as its measured time says") {
  scaling::Workload const work{.samples = 32, .pass_seconds = 20e-3, .optimizer_seconds = 1e-3};
  // Two devices: a step of 24 ms, of which communication takes 2 ms.
  scaling::StepProfile measured{.shards = 2,
                                .effective_batch_size = 64,
                                .samples_per_second = 64 / 24e-3,
                                .data_wait_ms = 1,
                                .forward_ms = 7,
                                .backward_ms = 13,
                                .communication_ms = 2,
                                .optimizer_ms = 1};
  auto const predicted = [&](Index devices) {
    return scaling::predict_data_parallel(work, measured, devices, scaling::Scaling::weak);
  };
  // A wait for data, but the loader's time is unknown: it makes two batches in 24 - 2 ms, so eight take 88 ms.
  CHECK(predicted(8).step_seconds == doctest::Approx(88e-3));
  CHECK(predicted(8).data_seconds == doctest::Approx((88 - 20 - 7 * 2 - 1) * 1e-3));
  // Its thread needs 4 ms for two batches: eight are ready in 16 ms, before the devices are.
  measured.ranks = {{.loader_ms = 4}};
  CHECK(predicted(8).data_seconds == 0);
  CHECK(predicted(8).step_seconds == doctest::Approx((20 + 7 * 2 + 1) * 1e-3));
  CHECK(predicted(8).samples_per_second == doctest::Approx(8 * 32 / 35e-3));
  // 20 ms for two batches: eight need 80 ms.
  measured.ranks = {{.loader_ms = 20}};
  CHECK(predicted(8).step_seconds == doctest::Approx(80e-3));
  CHECK(scaling::predict_data_parallel(work, measured, 8, scaling::Scaling::strong).data_seconds ==
        doctest::Approx((20 - 20.0 / 8 - 7 * 2 - 1) * 1e-3));
}
