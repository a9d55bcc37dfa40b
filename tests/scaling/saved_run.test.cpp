// SPDX-License-Identifier: Apache-2.0
#include <lockstep/scaling/saved_run.hpp>

#include <filesystem>
#include <string>

#include <doctest/doctest.h>

#include <lockstep/scaling/bottleneck.hpp>
#include <lockstep/scaling/profile_of.hpp>
#include <lockstep/train/logs/run_json.hpp>

#include "temporary_folder.hpp"

using namespace lockstep;
using lockstep_test::TemporaryFolder;
using lockstep_test::write_file;
using scaling::SavedRun;

namespace {

// Ten steps of 100 ms on one rank: 60 for passes, 25 for the optimizer, 5 for waiting and 10 outside of all phases.
train::RunRecord record() {
  train::RunRecord r;
  r.parallel = "single";
  r.engine = "self";
  r.batch_size = r.effective_batch_size = 32;
  r.parameters = 1000;
  r.steps = 10;
  r.samples = 320;
  r.training_seconds = 1;
  r.step_seconds = {0.1, 0.1, 0.1};
  r.data_wait_seconds = 0.05;
  r.phases = {.forward = 0.2, .backward = 0.4, .optimizer = 0.25};
  r.session.buckets = {{1600, 0.03}, {2000, 0.06}, {40, 0.12, 0, 0, 400}};
  return r;
}
SavedRun saved(train::RunRecord const& record) { return {train::run_json(record, {.summary = "because"}), "run"}; }

}  // namespace

TEST_CASE("a step is the sum of its phases and the rest") {
  auto const run = saved(record());
  CHECK(run.profile().step_ms() == doctest::Approx(100));
  auto const work = run.workload();
  CHECK(work.ranks == 1);
  CHECK(work.samples == 32);
  CHECK(work.pass_seconds == doctest::Approx(0.06));
  CHECK(work.optimizer_seconds == doctest::Approx(0.025));
  CHECK(work.other_seconds == doctest::Approx(0.01));
  CHECK(work.load_seconds == doctest::Approx(0.1));  // a wait
  CHECK(work.spread_seconds == 0);
  CHECK(scaling::predict(work, 1, parallel::CollectiveCost{}).samples_per_second == doctest::Approx(320));
}

TEST_CASE("the processors of ranks are saved, and give the same cause as the record") {
  auto r = record();
  r.world_size = 2;
  r.gradient_wire = parallel::WireFormat::bfloat16;
  r.ranks = {{0.05, 0.6, 0.1, 0.25}, {0.05, 0.7, 0.2, 0.15}};
  train::RankLoad load{.compute_seconds = 0.5,
                       .deviation_seconds = 0.002,
                       .queued_seconds = 0.1,
                       .loader_seconds = 0.3,
                       .throttled_seconds = 0.4,
                       .observed = 9,
                       .locked = 4,
                       .threads = 1,
                       .cores = 2,
                       .core_set = 4503599627370495};
  r.loads = {load, load};
  auto const profile = saved(r).profile(), expected = scaling::profile_of(r);
  REQUIRE(profile.ranks.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    auto const &rank = profile.ranks[i], &other = expected.ranks[i];
    for (auto const member :
         {&scaling::RankStep::data_ms, &scaling::RankStep::compute_ms, &scaling::RankStep::communication_ms,
          &scaling::RankStep::optimizer_ms, &scaling::RankStep::processor_ms, &scaling::RankStep::deviation_ms,
          &scaling::RankStep::queued_ms, &scaling::RankStep::loader_ms, &scaling::RankStep::throttled_ms,
          &scaling::RankStep::observed, &scaling::RankStep::locked, &scaling::RankStep::threads,
          &scaling::RankStep::cores, &scaling::RankStep::core_set})
      CHECK(rank.*member == doctest::Approx(other.*member));
    CHECK(rank.core_set == other.core_set);
  }
  CHECK(profile.gradient_bytes == 2000);
  CHECK(profile.fast_step_ms == doctest::Approx(expected.fast_step_ms));
  CHECK(scaling::find_bottleneck(profile).cause == "processor quota");
  CHECK(scaling::find_bottleneck(profile).summary == scaling::find_bottleneck(expected).summary);
  r.world_size = 1;
  r.loads.resize(1), r.ranks.resize(1);
  CHECK(saved(r).profile().ranks.size() == 1);
  CHECK(saved(r).profile().ranks[0].optimizer_ms == doctest::Approx(25));
  CHECK(saved(record()).profile().ranks.empty());
}

TEST_CASE("a batch covers all devices of all ranks, and a step is at least the sum of its phases") {
  auto r = record();
  r.world_size = 2, r.devices = 3, r.effective_batch_size = 192, r.samples = 1920;
  r.phases.communication = 0.3;  // with them 125 ms
  auto const run = saved(r);
  CHECK(run.profile().shards == 6);
  auto const work = run.workload();
  CHECK(work.ranks == 6);
  CHECK(work.samples == 32);
  r.training_seconds = 0.1;
  CHECK(saved(r).workload().other_seconds == doctest::Approx(0).scale(1));
}

TEST_CASE("with varying batches, a step has the mean size") {
  auto r = record();
  r.effective_batch_size = 128;  // the largest
  auto const run = saved(r);
  CHECK(run.profile().step_ms() == doctest::Approx(100));
  CHECK(run.workload().samples == 32);
  CHECK(run.workload().other_seconds == doctest::Approx(0.01));
}

TEST_CASE("waiting for other ranks is not counted as loading") {
  auto r = record();
  r.devices = 2;
  r.phases = {.forward = 0.2, .backward = 0.1, .communication = 0.6, .optimizer = 0.03};
  r.data_wait_seconds = 0.02;
  auto const work = saved(r).workload();
  CHECK(work.load_seconds == doctest::Approx(0.04));
  auto const alone = scaling::predict(work, 1, parallel::CollectiveCost{});
  CHECK(alone.step_seconds == doctest::Approx(0.04));
  CHECK(alone.data_seconds == doctest::Approx(0.002));
}

TEST_CASE("the sharded optimizer's time on one rank is the time of all together") {
  auto r = record();
  r.world_size = 2;
  r.shard_optimizer = true;
  CHECK(saved(r).workload().optimizer_seconds == doctest::Approx(0.05));
}

TEST_CASE("gradients have the bytes of their wire format") {
  auto r = record();
  CHECK(saved(r).workload().gradient_bytes == 4);
  r.gradient_wire = parallel::WireFormat::bfloat16;
  auto const work = saved(r).workload();
  CHECK(work.gradient_bytes == 2);
  CHECK(work.gradients[0].bytes == 1600);  // the bucket's, which is in run.json
  r.session.buckets.clear();
  double bytes = 0;
  for (auto const& part : saved(r).workload().gradients) bytes += part.bytes;
  CHECK(bytes == doctest::Approx(2 * 1000));
  auto text = train::run_json(r, {});
  text.replace(text.find("bf16"), 4, "bf61");
  CHECK_THROWS_WITH_AS(static_cast<void>(SavedRun(text, "run").workload()),
                       doctest::Contains("run.json: \"gradient_wire\" is \"bf61\"; must be \"fp32\", \"bf16\""),
                       DataError);
}

TEST_CASE("gradients are ready at their share of a pass, tables at its end") {
  auto const parts = saved(record()).workload().gradients;
  REQUIRE(parts.size() == 3);
  CHECK(parts[0].bytes == 1600);
  CHECK(parts[0].ready_seconds == doctest::Approx(0.015));
  CHECK(parts[1].ready_seconds == doctest::Approx(0.03));
  CHECK(parts[2].ready_seconds == doctest::Approx(0.06));
  CHECK(parts[2].table_bytes == 400);
  auto r = record();
  r.devices = 2;  // tables wait for the other all-reduces
  auto const of_two = saved(r).workload().gradients;
  CHECK(of_two[0].ready_seconds == doctest::Approx(0.03));
  CHECK(of_two[1].ready_seconds == doctest::Approx(0.06));
}

TEST_CASE("without buckets, or with a GPU's, gradients are ready evenly during backward") {
  auto r = record();
  auto const check = [&] {
    auto const parts = saved(r).workload().gradients;
    double bytes = 0, last = 0;
    for (auto const& part : parts) {
      CHECK(part.ready_seconds > last);
      bytes += part.bytes;
      last = part.ready_seconds;
    }
    CHECK(bytes == doctest::Approx(4000));
    CHECK(parts[0].ready_seconds > 0.02);
    CHECK(last == doctest::Approx(0.06));
  };
  SUBCASE("none") { r.session.buckets.clear(); }
  SUBCASE("a GPU") { r.phases = {.optimizer = 0.25, .pass = 0.6}; }
  check();
}

TEST_CASE("varying steps have a spread, and a fast loader has no time of its own") {
  auto r = record();
  r.step_seconds.clear();
  for (int i = 0; i <= 100; ++i) r.step_seconds.push_back(i * 1e-3);
  r.data_wait_seconds = 0.001;
  auto const work = saved(r).workload();
  CHECK(work.spread_seconds == doctest::Approx(0.045 / 1.645));
  CHECK(work.load_seconds == 0);
}

TEST_CASE("a directory's run or a doctor's result is read, and a missing file is named") {
  TemporaryFolder const folder;
  auto const message = [&](auto&& f) {
    try {
      f();
    } catch (DataError const& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(message([&] {
          SavedRun{folder / "nothing"};
        }).find("nothing: there is no such directory; give the --save-dir") != std::string::npos);
  CHECK(message([&] { SavedRun{folder.path().string()}; }).find(": holds no run.json; give the --save-dir") !=
        std::string::npos);
  lockstep_test::write_file(folder / "a_file", "{}");
  CHECK(message([&] { SavedRun{folder / "a_file"}; }).find("a_file: is a file, not the directory of a run") !=
        std::string::npos);
  auto const text = train::run_json(record(), {.example = "toy"});
  std::filesystem::create_directory(folder / "examined");
  write_file(folder / "examined/doctor.json", "{\"run\": " + text + "}");
  auto const example = [](json::Value const& run) { return run.at("example").string(); };
  SavedRun const examined(folder / "examined/");
  CHECK(examined.name() == "examined");
  CHECK(examined.read(example) == "toy");
  write_file(folder / "examined/run.json", "{\"steps\": 1}");
  SavedRun const bare(folder / "examined");
  CHECK(message([&] { static_cast<void>(bare.profile()); }).find("run.json: json: there is no member") !=
        std::string::npos);
  write_file(folder / "examined/run.json", "{\"steps\": ");
  CHECK(message([&] { SavedRun{folder / "examined"}; }).find("run.json: line 1") != std::string::npos);
}

TEST_CASE("a run without steps and impossible numbers are refused") {
  auto const refused = [](train::RunRecord const& r, std::string const& message) {
    CHECK_THROWS_WITH_AS(static_cast<void>(saved(r).workload()), doctest::Contains(message.c_str()), DataError);
  };
  auto r = record();
  r.phases = {};
  refused(r, "run.json: no step was timed");
  r = record();
  r.world_size = 0;
  refused(r, "run.json: \"world_size\" is 0; must be from 1");
  r = record();
  r.effective_batch_size = -3;
  refused(r, "\"effective_batch_size\" is -3");
  r = record();
  r.session.buckets[0].bytes = std::size_t{1} << 60;
  refused(r, "\"bytes\" is");
}

TEST_CASE("the work of a GPU is saved and read, and absent for a CPU") {
  CHECK(saved(record()).profile().gpu.kernels == 0);
  auto r = record();
  r.phases = {.optimizer = 0.25, .pass = 0.6};
  r.work = {.passes = 20,
            .replays = 5,
            .queue_seconds = 0.1,
            .measured = 4,
            .busy_seconds = 0.1,
            .kernels = 2000,
            .product_seconds = 0.2,
            .memory_seconds = 0.3};
  auto const gpu = saved(r).profile().gpu;
  CHECK(gpu.replayed == 0.25);
  CHECK(gpu.queue_ms == doctest::Approx(10));
  CHECK(gpu.busy_ms == doctest::Approx(50));
  CHECK(gpu.kernels == 200);
  CHECK(gpu.product_ms == doctest::Approx(20));
  CHECK(gpu.memory_ms == doctest::Approx(30));
}
