// SPDX-License-Identifier: Apache-2.0
#include <lockstep/scaling/diagnosis.hpp>

#include <string>

#include <doctest/doctest.h>

using namespace lockstep;
using scaling::Diagnosis;

namespace {

// 100 samples/s: steps of 32 in 320 ms, with 160 ms of waiting for data.
Diagnosis starved() {
  return {.profile = {.effective_batch_size = 32,
                      .samples_per_second = 100,
                      .data_wait_ms = 160,
                      .forward_ms = 50,
                      .backward_ms = 100,
                      .optimizer_ms = 10},
          .loader_samples_per_second = 100,
          .replayed_samples_per_second = 200,
          .num_workers = 1,
          .cores = 8};
}
// The run with a fast loader, on all cores.
Diagnosis fed() {
  auto out = starved();
  out.profile.samples_per_second = 200;
  out.profile.data_wait_ms = 0;
  out.loader_samples_per_second = 900;
  out.cores = 1;
  return out;
}

bool contains(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }
std::string printed(Diagnosis const& diagnosis) { return scaling::detail::lines(diagnosis.remedies()); }

}  // namespace

TEST_CASE("waiting for the loader comes first, with the number of workers that would suffice") {
  auto diagnosis = starved();
  diagnosis.profile.threads = 4;
  auto const remedies = diagnosis.remedies();
  REQUIRE_FALSE(remedies.empty());
  CHECK(remedies[0].gain == doctest::Approx(1));
  CHECK(remedies[0].description == "the loader gives 100 samples/s, the model takes 200: --num-workers 3");
  CHECK(contains(diagnosis.text(), "+100 %  the loader gives 100"));
  diagnosis.cores = 5;
  CHECK(contains(printed(diagnosis), "--num-workers 3 if more cores are available, all 5 are in use"));
  diagnosis.num_workers = 0;
  CHECK(contains(printed(diagnosis), "--num-workers 1 or more"));
  diagnosis.num_workers = 1;
  diagnosis.loader_samples_per_second = 215;
  CHECK(contains(printed(diagnosis), "--num-workers 2"));
  diagnosis.loader_samples_per_second = 225;
  CHECK(contains(printed(diagnosis), "a larger --prefetch"));
}

TEST_CASE("bfloat16 is suggested without a number if the processor has tiles for it and computing dominates the step") {
  auto diagnosis = fed();
  CHECK_FALSE(contains(printed(diagnosis), "bf16"));
  diagnosis.can_use_bfloat16 = true;
  auto const last = diagnosis.remedies().back();
  CHECK(contains(last.description, "--precision bf16"));
  CHECK(last.gain == 0);
  CHECK_FALSE(contains(printed([] {
                         auto waits = starved();
                         waits.can_use_bfloat16 = true;  // half of the step is waiting, a little is the optimizer
                         return waits;
                       }()),
                       "bf16"));
  diagnosis.on_host = false;
  CHECK_FALSE(contains(printed(diagnosis), "bf16"));
}

TEST_CASE("oneDNN is suggested without a number if convolutions lack it and computing dominates the step") {
  auto diagnosis = fed();
  CHECK_FALSE(contains(printed(diagnosis), "onednn"));
  diagnosis.can_use_onednn = true;
  auto const last = diagnosis.remedies().back();
  CHECK(contains(last.description, "lockstep::onednn linked to the program"));
  CHECK(last.gain == 0);
  auto waits = starved();
  waits.can_use_onednn = true;
  CHECK_FALSE(contains(printed(waits), "onednn"));
  diagnosis.on_host = false;
  CHECK_FALSE(contains(printed(diagnosis), "onednn"));
}

TEST_CASE("a loader with almost no throughput, or without measurements") {
  auto diagnosis = starved();
  diagnosis.loader_samples_per_second = 1e-8;  // 22 thousand million workers
  CHECK(contains(printed(diagnosis), "the model takes 200: --num-workers 220000000"));
  diagnosis.on_host = false;
  CHECK(contains(printed(diagnosis), "the model takes 200: --num-workers 220000000"));
  diagnosis.loader_samples_per_second = 0;
  CHECK(contains(printed(diagnosis), "the loader gives 0 samples/s, the model takes 200: samples that are cheaper"));
  CHECK_FALSE(contains(printed(diagnosis), "--num-workers"));
}

TEST_CASE("a fast loader costs the speed difference to replayed steps, on the host") {
  auto diagnosis = fed();
  CHECK_FALSE(contains(printed(diagnosis), "making batches"));
  diagnosis.replayed_samples_per_second = 230;
  CHECK(contains(printed(diagnosis), "+ 15 %  making batches takes cores from training"));
  diagnosis.loader_samples_per_second = 1e6;  // loading needs almost no time: replayed steps were faster by chance
  CHECK_FALSE(contains(printed(diagnosis), "making batches"));
  diagnosis.num_workers = 3, diagnosis.ranks_here = 2, diagnosis.shards_here = diagnosis.cores = 4;
  diagnosis.replayed_samples_per_second = 300;
  diagnosis.loader_samples_per_second = 5000;  // 0.04 of the time of 6 workers, in addition to 4 training threads
  CHECK(contains(printed(diagnosis), "+  6 %  making batches"));
  diagnosis.num_workers = 0;
  CHECK_FALSE(contains(printed(diagnosis), "making batches"));
  diagnosis.num_workers = 3;
  diagnosis.on_host = false;
  CHECK_FALSE(contains(printed(diagnosis), "making batches"));
}

TEST_CASE("idle cores are counted, and so are threads that share a core") {
  auto diagnosis = fed();
  diagnosis.cores = 2;  // 150 of 160 ms would take half as long
  CHECK(contains(printed(diagnosis), "+ 88 %  at best: 1 of 2 cores have no training thread"));
  CHECK(contains(printed(diagnosis), "or --threads 2"));
  diagnosis.shards_here = 3;
  diagnosis.cores = 4;  // three have one each, and none can have two
  CHECK(contains(printed(diagnosis), "1 of 4 cores have no training thread: more --nproc or --devices"));
  CHECK_FALSE(contains(printed(diagnosis), "--threads"));
  diagnosis = fed();
  diagnosis.cores = 2;
  diagnosis.on_host = false;
  CHECK_FALSE(contains(printed(diagnosis), "training thread"));
  diagnosis = fed();
  diagnosis.profile.threads = 2;
  CHECK(contains(printed(diagnosis), "2 training threads share 1 cores: --threads 1, or fewer ranks"));
  diagnosis.profile.threads = 1;
  diagnosis.shards_here = 2;
  CHECK(contains(printed(diagnosis), "2 training threads share 1 cores: fewer ranks"));
}

TEST_CASE("the fixed work of a step is divided among more samples in a larger batch") {
  auto diagnosis = fed();
  diagnosis.profile.optimizer_ms = 80;
  diagnosis.profile.backward_ms = 30;  // half of a step, so a quarter of the time for a sample
  auto const remedies = diagnosis.remedies();
  REQUIRE(remedies.size() == 1);
  CHECK(remedies[0].gain == doctest::Approx(1 / 0.75 - 1));
  CHECK(contains(remedies[0].description, "twice the --batch-size: the optimizer would take 25 % less"));
}

TEST_CASE("a rank that delays the others is named") {
  auto diagnosis = fed();
  diagnosis.profile.slowest = {.rank = 3, .phase = "data", .ms = 60, .min_ms = 20, .lag_ms = 40};
  CHECK(contains(printed(diagnosis), "+ 33 %  the others wait for rank 3, whose data"));
}

// 200 samples/s: steps of 40 in 200 ms, on two ranks of this host.
TEST_CASE("all measurements and all remedies are listed, the most effective first") {
  Diagnosis diagnosis{.profile = {.shards = 2,
                                  .threads = 2,
                                  .effective_batch_size = 40,
                                  .samples_per_second = 200,
                                  .data_wait_ms = 5,
                                  .forward_ms = 30,
                                  .backward_ms = 60,
                                  .communication_ms = 20,
                                  .optimizer_ms = 52,
                                  .pass_ms = 30,
                                  .slowest = {.rank = 3, .phase = "data", .ms = 60, .min_ms = 20, .lag_ms = 40}},
                      .loader_samples_per_second = 195,
                      .replayed_samples_per_second = 220,
                      .num_workers = 3,
                      .shards_here = 2,
                      .ranks_here = 2,
                      .cores = 8,
                      .all_reduce = {5e-6, 1e-9}};
  CHECK(diagnosis.text() ==
        "measured in short runs that change nothing:\n"
        "  steps as they are            200.0 samples/s, 200.0 ms each: compute 120.0, communication not hidden 20.0, "
        "optimizer 52.0, waiting for data 5.0\n"
        "  steps on batches made before 220.0 samples/s\n"
        "  the loader alone             195.0 samples/s with --num-workers 3\n"
        "  an all-reduce alone          5.0 us and 1000.0 us for a MB\n"
        "  cores                        8; threads that train on them 4, that load 6\n"
        "changes that would help, best first:\n  + 43 %  at best: 4 of 8 cores have no training thread: more --nproc "
        "or --devices, or --threads 4\n"
        "  + 25 %  the others wait for rank 3, whose data takes longest: look for other work on its host\n"
        "  + 22 %  twice the --batch-size: optimizer and sums would take 18 % less of the time for a sample\n"
        "  + 10 %  the loader gives 195 samples/s, the model takes 220: --num-workers 4 if more cores are available, "
        "all 8 are in use; otherwise samples that are cheaper to make, or data::Cache\n");
  auto const json = json::parse(diagnosis.json("{}"), "doctor.json");
  CHECK(json.at("schema").integer() == 1);
  CHECK(json.at("replayed_samples_per_second").number() == 220);
  CHECK(json.at("num_workers").integer() == 3);
  CHECK(json.at("cores").integer() == 8);
  CHECK(json.at("all_reduce").at("start_us").number() == doctest::Approx(5));
  CHECK(json.at("remedies").array()[1].at("gain").number() == doctest::Approx(0.25));

  diagnosis.cores = 12;
  CHECK(contains(diagnosis.text(), "the model takes 220: --num-workers 4\n"));
  diagnosis.on_host = false;
  CHECK(contains(diagnosis.text(), "12; threads that train on them 0, that load 6\n"));
  diagnosis.profile.slowest.lag_ms = 3;
  CHECK_FALSE(contains(diagnosis.text(), "the others wait"));
  diagnosis.profile.slowest.lag_ms = 200;  // a whole step is unknown
  CHECK_FALSE(contains(diagnosis.text(), "the others wait"));
}

TEST_CASE("without a remedy the report says so; without measurements it lists none") {
  auto diagnosis = fed();
  diagnosis.profile.optimizer_ms = 1;
  CHECK(contains(diagnosis.text(), "nothing was found that would make it 2 % faster"));
  CHECK(Diagnosis{}.remedies().empty());
  CHECK_FALSE(contains(diagnosis.text(), "an all-reduce alone"));
  CHECK_FALSE(json::parse(diagnosis.json("{}"), "doctor.json").find("all_reduce"));
  diagnosis.all_reduce = {5e-6, 1e-9};
  CHECK(contains(diagnosis.text(), "5.0 us and 1000.0 us for a MB"));
}

TEST_CASE("doctor.json has the measured run, and no gain for a remedy without a known one") {
  auto diagnosis = fed();
  diagnosis.profile.threads = 2;
  diagnosis.all_reduce = {5e-6, 1e-9};
  auto const json = json::parse(diagnosis.json("{\"steps\": 7}"), "doctor.json");
  CHECK(json.at("run").at("steps").integer() == 7);
  CHECK(json.at("loader_samples_per_second").number() == 900);
  CHECK(json.at("all_reduce").at("us_per_mb").number() == doctest::Approx(1000));
  auto const& last = json.at("remedies").array().back();
  CHECK_FALSE(last.find("gain"));
  CHECK(contains(last.at("says").string(), "share 1 cores"));
}

TEST_CASE("locks, uneven batches and a quota are remedies with the evidence of the ranks' processors") {
  auto diagnosis = starved();
  scaling::RankStep rank{.data_ms = 160, .compute_ms = 150, .optimizer_ms = 10, .processor_ms = 150, .cores = 8};
  rank.observed = 50, rank.locked = 40;
  diagnosis.profile.ranks = {rank};
  CHECK(contains(printed(diagnosis), "+100 %  training waits for data during 50 % of a step, and loader threads that"));
  CHECK_FALSE(contains(printed(diagnosis), "--num-workers 3"));
  rank = {.compute_ms = 150, .communication_ms = 100, .processor_ms = 150, .deviation_ms = 150, .cores = 8};
  diagnosis.profile.ranks = {rank, rank};
  CHECK(contains(printed(diagnosis), "+ 38 %  ranks wait for each other during 37 % of a step"));
  rank = {.compute_ms = 250, .processor_ms = 150, .throttled_ms = 100, .cores = 8};
  diagnosis.profile.ranks = {rank};
  CHECK(contains(printed(diagnosis), "+ 45 %  the quota of the control group stops the run for 40 % of a step"));
}

TEST_CASE("a GPU's work is shown with a remedy for its limit") {
  Diagnosis diagnosis{.profile = {.samples_per_step = 32,
                                  .samples_per_second = 32e3,
                                  .pass_ms = 0.95,
                                  .gpu = {.replayed = 0.5, .queue_ms = 0.9, .busy_ms = 0.5, .kernels = 120}},
                      .loader_samples_per_second = 1e6,
                      .replayed_samples_per_second = 32e3,
                      .on_host = false,
                      .can_use_bfloat16 = true};
  CHECK(contains(diagnosis.text(),
                 "the GPU in a step            forward and backward 0.50 ms without waits, 120 kernels, queued in 0.90 "
                 "ms, 50 % of passes as CUDA graphs"));
  REQUIRE(diagnosis.remedies().size() == 1);
  CHECK(diagnosis.remedies()[0].gain == doctest::Approx(1));  // half of the step
  CHECK(contains(printed(diagnosis), "at best, without waits of the GPU for the host: batches with fewer"));
  diagnosis.profile.gpu.busy_ms = 0.9;
  CHECK(contains(printed(diagnosis), "a larger --batch-size has larger kernels"));
  CHECK_FALSE(contains(printed(diagnosis), "bf16"));
  auto& gpu = diagnosis.profile.gpu;
  gpu.kernels = 50, gpu.product_ms = 0.4, gpu.memory_ms = 0.1;
  CHECK(contains(printed(diagnosis), "--precision bf16 uses the GPU's tensor cores"));
  gpu.product_ms = 0.05;
  CHECK(contains(printed(diagnosis), "--precision bf16 halves the bytes"));
  diagnosis.can_use_bfloat16 = false;
  CHECK_FALSE(contains(printed(diagnosis), "bf16"));
  gpu = {};
  CHECK_FALSE(contains(diagnosis.text(), "the GPU in a step"));
}
