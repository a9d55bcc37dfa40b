// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include <lockstep/core/error.hpp>
#include <lockstep/scaling/study/study_run.hpp>

#include "scaling/study/saved_runs.hpp"

using namespace lockstep;
using namespace lockstep_test;
using scaling::FoundRuns, scaling::MissingRun, scaling::StudyRun;

TEST_CASE("a data set is named by its file, or by its folder if the file says only that it trains") {
  CHECK(StudyRun::dataset_name("/data/ag_news/train.csv") == "ag_news");
  CHECK(StudyRun::dataset_name("imdb.csv") == "imdb");
  CHECK(StudyRun::dataset_name("train.csv") == "train");
  CHECK(StudyRun::dataset_name("data/har/") == "har");
  CHECK(StudyRun::dataset_name("a b, 5 %.csv") == "a b, 5 %");
  CHECK(StudyRun::dataset_name("files:sport=/x/*.txt,other=/y") == "sport");
}

TEST_CASE("warm-up epochs are left out of epoch times and rates") {
  TemporaryFolder const folder;
  SavedExample{.speed = 1000, .data = "x/news/train.csv", .seed = 7}.save(folder / "run");
  auto const whole = StudyRun::read(folder / "run", 0);
  CHECK(whole.dataset == "news");
  CHECK(whole.repeat == 7);
  CHECK(whole.batch == 32);
  CHECK_FALSE(whole.batch_is_global);
  CHECK(whole.epoch_seconds.size() == 3);
  CHECK(whole.run.profile.samples_per_second == doctest::Approx(1000));
  REQUIRE(whole.workload.has_value());

  // The first epoch takes 0.4 of the time for a third of the samples.
  auto const warm = StudyRun::read(folder / "run", 1);
  CHECK(warm.left_out_epochs == 1);
  CHECK(warm.epoch_seconds.size() == 2);
  CHECK(warm.run.profile.samples_per_second == doctest::Approx(1000 / 0.9));

  // The log says how many samples the first epoch has.
  write_file(folder / "run/metrics.jsonl",
             "{\"kind\":\"step\",\"step\":4,\"epoch\":0,\"samples\":128}\n"
             "{\"kind\":\"step\",\"step\":9,\"epoch\":1,\"samples\":288}\n"
             "{\"kind\":\"step\",\"step\":10,\"epoch\":0,\"samples\":null}\n{\"kind\":\"st");
  auto const logged = StudyRun::read(folder / "run", 1);
  CHECK(logged.unread_lines == 2);
  CHECK(logged.run.profile.samples_per_second == doctest::Approx((768 - 128) / (0.6 * 0.768)));

  auto const all = StudyRun::read(folder / "run", 3);
  CHECK(all.left_out_epochs == 0);
  CHECK(all.run.profile.samples_per_second == doctest::Approx(1000));
}

TEST_CASE("runs of other settings, batches or data have other keys, and other seeds do not") {
  TemporaryFolder const folder;
  auto const key = [&](SavedExample const& example) {
    example.save(folder / "run");
    return StudyRun::read(folder / "run", 0).group_key();
  };
  SavedExample const one{};
  CHECK(key(one) == key({.seed = 2}));
  CHECK(key(one) == key({.parallel = "ddp", .devices = 4}));
  CHECK(key(one) != key({.batch = 64}));
  CHECK(key(one) != key({.data = "x.csv"}));
  CHECK(key(one) != key({.lr = "0.01"}));
  CHECK(key({.global_batch = 64}) == key({.parallel = "dp", .devices = 2, .global_batch = 64}));
  CHECK(key({.global_batch = 64}) != key({.batch = 64}));
}

TEST_CASE("runs are found below folders, each once, and also those without a result") {
  TemporaryFolder const folder;
  SavedExample{}.save(folder / "a/b/finished");
  std::filesystem::create_directories(folder / "a/cut");
  write_file(folder / "a/cut/metrics.jsonl",
             "{\"kind\":\"step\",\"step\":1,\"epoch\":0,\"samples\":32,\"samples_per_second\":10.0}\n"
             "{\"kind\":\"step\",\"step\":2,\"epoch\":1,\"samples\":64,\"samples_per_second\":30.0}\n"
             "{\"kind\":\"step\",\"step\":3,\"epoch\":1,\"samples\":96,\"samples_per_second\":20.0}\n"
             "{\"kind\":\"step\",\"step\":4,\"epoch\":1,\"samples\":128,\"samples_per_second\":\"fast\"}\n"
             "{\"kind\":\"step\",\"step\":\"5\",\"epoch\":1,\"samples\":160,\"samples_per_second\":20.0}\n{\"kin");
  write_file(folder / "a/failed.entry.json", "{}");
  auto const found = FoundRuns::below({folder / "a", folder / "a/b/finished/", folder / "a/b"});
  CHECK(found.finished == std::vector<std::string>{folder / "a/b/finished"});
  CHECK(found.unfinished == std::vector<std::string>{folder / "a/cut"});
  CHECK(found.entries == std::vector<std::string>{folder / "a/failed.entry.json"});

  auto const cut = MissingRun::unfinished(folder / "a/cut", "");
  CHECK(cut.name == "cut");
  CHECK(cut.reason ==
        "unfinished; its log reaches step 3 in epoch 2, with a median of 20.0 samples/s; lines of the log that cannot "
        "be read: 3");

  std::filesystem::create_directories(folder / "empty");
  CHECK_THROWS_WITH_AS(FoundRuns::below({folder / "empty"}), doctest::Contains("there is no run in it or below it"),
                       DataError);
  CHECK_THROWS_WITH_AS(FoundRuns::below({folder / "none"}), doctest::Contains("is no folder"), DataError);
}
