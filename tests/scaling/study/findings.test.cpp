// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/scaling/study/findings.hpp>

#include "scaling/study/saved_runs.hpp"

using namespace lockstep;
using namespace lockstep_test;
using scaling::Finding, scaling::Study;

namespace {
Finding const* with(std::vector<Finding> const& all, std::string const& text) {
  auto const found = std::find_if(all.begin(), all.end(),
                                  [&](auto const& one) { return one.finding.find(text) != std::string::npos; });
  return found == all.end() ? nullptr : &*found;
}
}  // namespace

TEST_CASE("negative scaling by communication is found with cause, evidence and remedy, and comes first") {
  TemporaryFolder const folder;
  SavedExample{}.save(folder / "one");
  SavedExample{.parallel = "ddp", .devices = 4, .speed = 500, .communication_ms = 220}.save(folder / "four");
  auto const all = findings_of(Study::read({folder / ""}));
  REQUIRE_FALSE(all.empty());
  CHECK(all[0].finding == "Negative scaling: ddp 4 is 0.50 times as fast as one device (12 % of ideal).");
  CHECK(all[0].kind == Finding::Kind::remedy);
  CHECK(all[0].cause == "A step computes too little for the gradients that it sends.");
  CHECK(all[0].evidence.find("of a step's 256.0 ms") != std::string::npos);
  CHECK(all[0].recommendation.find("larger batch") != std::string::npos);
  CHECK(all[0].gain == doctest::Approx(256.0 / (256 - 220) - 1).epsilon(0.01));
  CHECK(with(all, "predicted to pay up to"));
  for (std::size_t i = 1; i < all.size(); ++i)
    CHECK((all[i - 1].kind < all[i].kind || (all[i - 1].kind == all[i].kind && all[i - 1].gain >= all[i].gain)));
}

TEST_CASE("the cause of poor scaling is that of the run's own verdict, if it has one") {
  TemporaryFolder const folder;
  auto const read = [&](SavedExample const& example) {
    example.save(folder / "run");
    return scaling::StudyRun::read(folder / "run", 0);
  };
  auto four = read({.parallel = "ddp", .devices = 4, .speed = 1100});
  scaling::RankStep rank{.compute_ms = 40, .optimizer_ms = 4, .processor_ms = 20, .queued_ms = 20};
  rank.cores = 2;
  four.run.profile.ranks.assign(4, rank);
  auto const all = findings_of(Study::of({read({}), four}, {}));
  auto const* const found = with(all, "Poor scaling: ddp 4");
  REQUIRE(found);
  CHECK(found->cause == "Oversubscription: 4 training threads take turns on 2 processors.");
  CHECK(found->recommendation == "Fewer ranks, devices or --threads.");
}

TEST_CASE("advice on dp and ddp follows from the measured rates") {
  TemporaryFolder const folder;
  SavedExample{}.save(folder / "one");
  auto const advice = [&](double dp, double ddp) {
    SavedExample{.parallel = "dp", .devices = 2, .speed = dp}.save(folder / "dp");
    SavedExample{.parallel = "ddp", .devices = 2, .speed = ddp}.save(folder / "ddp");
    auto const all = findings_of(Study::read({folder / ""}));
    auto const* const found = with(all, "on 2 devices.");
    return found ? found->finding + " " + found->recommendation.substr(0, 8) : "";
  };
  CHECK(advice(1200, 1800) == "ddp is 1.50 times as fast as dp on 2 devices. Use ddp.");
  CHECK(advice(1900, 1520).starts_with("dp is 1.25 times as fast as ddp on 2 devices. Use dp o"));
  CHECK(advice(1500, 1510).starts_with("dp and ddp are equally fast on 2 devices. Use dp i"));
}

TEST_CASE("a worse accuracy of larger batches leads to learning-rate scaling, and an equal one does not") {
  TemporaryFolder const folder;
  SavedExample{.accuracy = 0.90}.save(folder / "one");
  SavedExample{.parallel = "ddp", .devices = 4, .speed = 3900, .accuracy = 0.86}.save(folder / "four");
  auto const worse = findings_of(Study::read({folder / ""}));
  auto const* const found = with(worse, "worse accuracy");
  REQUIRE(found);
  CHECK(found->recommendation.find("--lr-scaling linear, here 4.0 times the rate") != std::string::npos);
  SavedExample{.parallel = "ddp", .devices = 4, .speed = 3900, .accuracy = 0.899}.save(folder / "four");
  auto const equal = findings_of(Study::read({folder / ""}));
  CHECK_FALSE(with(equal, "worse accuracy"));
  CHECK(with(equal, "same accuracy")->recommendation == "Keep the learning rate: it needs no scaling for this batch.");
}

TEST_CASE("a faster batch is recommended, and noisy repeats and unequal parameters are reported") {
  TemporaryFolder const folder;
  SavedExample{}.save(folder / "a");
  SavedExample{.batch = 64, .speed = 1300}.save(folder / "b");
  CHECK(with(findings_of(Study::read({folder / ""})), "Batch 64 is 1.30 times as fast as batch 32 with single."));
  SavedExample{.speed = 1500, .seed = 2}.save(folder / "c");
  SavedExample{.parallel = "dp", .devices = 2, .sha = "x"}.save(folder / "d");
  SavedExample{.parallel = "ddp", .devices = 2, .sha = "y"}.save(folder / "e");
  auto const all = findings_of(Study::read({folder / ""}));
  CHECK(with(all, "Repeated runs of single differ by 28 %."));
  CHECK(all[0].kind == Finding::Kind::error);
  CHECK(all[0].finding == "dp and ddp on 2 devices learn different parameters.");
}

TEST_CASE("differences that chance explains lead to no advice") {
  TemporaryFolder const folder;
  SavedExample{.accuracy = 0.6, .evaluated = 16}.save(folder / "one");
  SavedExample{.parallel = "ddp", .devices = 4, .speed = 3900, .accuracy = 0.4, .evaluated = 16}.save(folder / "four");
  auto const few = findings_of(Study::read({folder / ""}));
  CHECK_FALSE(with(few, "worse accuracy"));
  // 2 sqrt((0.6 0.4 + 0.4 0.6) / 16) = 0.3464
  CHECK(
      with(few, "same accuracy")->evidence.find("differences up to 0.3464 are chance, in evaluations on 16 samples") !=
      std::string::npos);
  std::filesystem::remove_all(folder / "four");
  SavedExample{.speed = 700, .seed = 2}.save(folder / "two");
  SavedExample{.batch = 64, .speed = 1000}.save(folder / "large");
  // Batch 32 has 850 samples/s with a deviation of 25 %.
  CHECK_FALSE(with(findings_of(Study::read({folder / ""})), "Batch 64 is"));
}

TEST_CASE("a faster batch that learns less comes with a condition, a smaller one with another cause") {
  TemporaryFolder const folder;
  SavedExample{}.save(folder / "a");
  SavedExample{.batch = 64, .speed = 1300, .accuracy = 0.8}.save(folder / "b");
  auto const worse = findings_of(Study::read({folder / ""}));
  REQUIRE(with(worse, "Batch 64 is"));
  CHECK(with(worse, "Batch 64 is")->recommendation.starts_with("Use batch 64 only with a learning rate that restores"));
  SavedExample{.batch = 64, .speed = 700}.save(folder / "b");
  auto const smaller = findings_of(Study::read({folder / ""}));
  REQUIRE(with(smaller, "Batch 32 is"));
  CHECK(with(smaller, "Batch 32 is")->cause.starts_with("Activations of a smaller batch"));
  CHECK(with(smaller, "Batch 32 is")->recommendation == "Use batch 32 instead of 64.");
}

TEST_CASE("failures of a data set without any result are one finding per message") {
  TemporaryFolder const folder;
  SavedExample{}.save(folder / "one");
  for (auto const* const name : {"bad-single", "bad-ddp2"}) {
    scaling::StudyEntry entry{.name = name, .example = "toy", .parallel = "single", .data = "bad.csv"};
    entry.state = scaling::StudyEntry::State::failed;
    entry.message = "bad.csv:3: no number";
    write_file(folder / (std::string(name) + ".entry.json"), entry.json());
  }
  auto const all = findings_of(Study::read({folder / ""}));
  REQUIRE_FALSE(all.empty());
  CHECK(all[0].group == "bad");
  CHECK(all[0].finding == "2 runs failed.");
  CHECK(all[0].evidence == "bad.csv:3: no number");
  CHECK_FALSE(with(all, "1 run failed."));
}
