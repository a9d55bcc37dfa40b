// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/logs/run_json.hpp>

#include <cmath>

#include <doctest/doctest.h>

#include <lockstep/core/json.hpp>

#include "temporary_folder.hpp"

using namespace lockstep;

namespace {
train::RunRecord record() {
  train::RunRecord r;
  r.parallel = "ddp", r.engine = "process", r.world_size = 2, r.batch_size = 32, r.effective_batch_size = 64;
  r.steps = 2, r.samples = 100, r.training_seconds = 0.5, r.step_seconds = {0.2, 0.3}, r.epoch_seconds = {0.6};
  r.data_wait_seconds = 0.002, r.phases = {0.1, 0.2, 0.01, 0.04}, r.pass_began = 10;
  r.ranks = {{0.002, 0.3, 0.01, 0.04}, {0.2, 0.25, 0, 0.04}};
  r.session = {{{1024, 10.001, 10.002, 10.004}}, {4096, 2048}, {"head.bias"}};
  r.train_loss = 0.41;
  r.evaluations = {{1, 0, 50, 0.9, {{"accuracy", 0.1}}, 1, true}, {2, 1, 50, 0.47, {{"accuracy", 0.852}}, 2}};
  return r;
}
}  // namespace

TEST_CASE("run.json has the record's values, phases and quantiles per step in milliseconds") {
  auto const json = json::parse(train::run_json(record(), {"text", "host", "abc", "compute", "because"}), "run.json");
  CHECK(json.at("schema").integer() == 1);
  CHECK(json.at("example").string() == "text");
  CHECK(json.at("engine").string() == "process");
  CHECK(json.at("world_size").integer() == 2);
  CHECK(json.at("effective_batch_size").integer() == 64);
  CHECK(json.at("samples_per_second").number() == 200);
  CHECK(json.at("step_ms").at("p95").number() == doctest::Approx(200));
  auto const& phases = json.at("phases_ms");
  CHECK(phases.at("data_wait").number() == doctest::Approx(1));
  CHECK(phases.at("backward").number() == doctest::Approx(100));
  CHECK(phases.at("communication_exposed").number() == doctest::Approx(5));
  auto const& second = json.at("ranks_ms").at(std::size_t{1});
  CHECK(second.at("data_wait").number() == doctest::Approx(100));
  CHECK(second.at("compute").number() == doctest::Approx(125));
  CHECK(second.at("communication_exposed").number() == 0);
  CHECK(second.at("optimizer").number() == doctest::Approx(20));
  auto const& bucket = json.at("buckets").at(std::size_t{0});
  CHECK(bucket.at("bytes").integer() == 1024);
  CHECK(bucket.at("end_ms").number() == doctest::Approx(4));
  CHECK_FALSE(bucket.find("table_bytes"));
  CHECK(json.at("peak_bytes_per_device").at(std::size_t{1}).integer() == 2048);
  CHECK(json.at("unused_parameters").at(std::size_t{0}).string() == "head.bias");
  CHECK(json.at("final").at("eval_accuracy").number() == 0.852);
  CHECK(json.at("final").at("eval_samples").integer() == 50);
  CHECK(json.at("best").at("step").integer() == 1);
  CHECK(json.at("best").at("eval_accuracy").number() == 0.1);
  CHECK(json.at("resumed_at").array().empty());
  CHECK(json.find("reproducible") == nullptr);
  auto other = record();
  other.evaluations[1].loss = std::nan(""), other.evaluations[1].metrics[0].second = std::nan("");
  auto const no_number = json::parse(train::run_json(other, {}), "run.json");
  CHECK(no_number.at("final").at("eval_loss").is_null());
  CHECK(no_number.at("final").at("eval_accuracy").is_null());
  CHECK(no_number.at("best").at("eval_loss").number() == 0.9);
  other.reproducible = 8;
  other.shard_optimizer = true;
  CHECK(json::parse(train::run_json(other, {}), "run.json").at("reproducible").integer() == 8);
  CHECK(json::parse(train::run_json(other, {}), "run.json").at("shard_optimizer").boolean());
  CHECK(json.find("shard_optimizer") == nullptr);
  CHECK(json.find("gradient_wire") == nullptr);
  other.gradient_wire = parallel::WireFormat::bfloat16;
  CHECK(json::parse(train::run_json(other, {}), "run.json").at("gradient_wire").string() == "bf16");
  CHECK(json.find("loss_scale") == nullptr);
  other.loss_scale = {1024, 7, 3};
  auto const half = json::parse(train::run_json(other, {}), "run.json");
  CHECK(half.at("loss_scale").number() == 1024);
  CHECK(half.at("skipped_steps").integer() == 3);
  CHECK(json.at("verdict").at("says").string() == "because");
}

TEST_CASE("run.json has the command and its settings, with numbers and booleans as such") {
  train::RunLabels labels;
  labels.command = {"./text", "--lr", "0.01"};
  labels.settings = {{"lr", "0.01"},     {"epochs", "3"},
                     {"trace", "false"}, {"lr-schedule", "cosine"},
                     {"data", "nan"},    {"seed", "18446744073709551615"},
                     {"name", "1e5x"},   {"code", "007"},
                     {"rate", "1e5"},    {"class", "12"},
                     {"flag", "true"},   {"tiny", "1e-05"}};
  labels.strings = {"class", "flag"};
  auto const json = json::parse(train::run_json(record(), labels), "run.json");
  CHECK(json.at("command").at(std::size_t{1}).string() == "--lr");
  auto const& settings = json.at("settings");
  CHECK(settings.at("lr").number() == 0.01);
  CHECK(settings.at("epochs").integer() == 3);
  CHECK_FALSE(settings.at("trace").boolean());
  CHECK(settings.at("lr-schedule").string() == "cosine");
  CHECK(settings.at("data").string() == "nan");
  CHECK(settings.at("name").string() == "1e5x");
  CHECK(settings.at("code").string() == "007");
  CHECK(settings.at("rate").string() == "1e5");
  CHECK(settings.at("class").string() == "12");
  CHECK(settings.at("flag").string() == "true");
  CHECK(settings.at("tiny").number() == 1e-5);
  CHECK(settings.at("seed").number() == 18446744073709551615.0);
  CHECK_FALSE(json::parse(train::run_json(record(), {}), "run.json").find("settings"));
}

TEST_CASE("after a resume, speed and milliseconds cover the resumed part, and the last best is the best") {
  auto went_on = record();
  went_on.resumed_at = {1};
  went_on.samples_before = 40;
  went_on.evaluations[1].best = true;
  auto const json = json::parse(train::run_json(went_on, {}), "run.json");
  CHECK(json.at("steps").integer() == 2);
  CHECK(json.at("samples").integer() == 100);
  CHECK(json.at("samples_per_second").number() == 120);
  CHECK(json.at("phases_ms").at("data_wait").number() == doctest::Approx(2));
  CHECK(json.at("best").at("step").integer() == 2);
  CHECK(json.at("best").at("eval_accuracy").number() == 0.852);
}

TEST_CASE("forward and backward of a GPU are one phase") {
  auto r = record();
  r.phases = {.communication = 0.01, .pass = 0.3};
  r.ranks.resize(1);
  auto const json = json::parse(train::run_json(r, {}), "run.json");
  CHECK(json.at("phases_ms").at("forward_and_backward").number() == doctest::Approx(150));
  CHECK(json.at("phases_ms").find("forward") == nullptr);
  CHECK(json.find("ranks_ms") == nullptr);
}

TEST_CASE("run.json has the processors of ranks on the host, and the cause of lost time if it was looked for") {
  auto r = record();
  CHECK(json::parse(train::run_json(r, {}), "run.json").find("rank_loads") == nullptr);
  CHECK(json::parse(train::run_json(r, {}), "run.json").at("verdict").find("cause") == nullptr);
  r.loads = {{.compute_seconds = 0.2, .cores = 2}, {.queued_seconds = 0.1, .locked = 3, .cores = 2}};
  auto const json = json::parse(train::run_json(r, {.cause = "slow data"}), "run.json");
  CHECK(json.at("verdict").at("cause").string() == "slow data");
  CHECK(json.at("rank_loads").at(std::size_t{0}).at("compute_processor_ms").number() == doctest::Approx(100));
  CHECK(json.at("rank_loads").at(std::size_t{1}).at("queued_ms").number() == doctest::Approx(50));
  CHECK(json.at("rank_loads").at(std::size_t{1}).at("loader_locked").number() == 3);
  CHECK(json.at("step_ms").at("p10").number() == doctest::Approx(200));
  r.loads[0].cores = 0;  // on a GPU
  CHECK(json::parse(train::run_json(r, {}), "run.json").find("rank_loads") == nullptr);
}

TEST_CASE("start-up is separate, and only a GPU has the work of a GPU") {
  auto r = record();
  r.step_seconds = {0.13, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01};
  auto json = json::parse(train::run_json(r, {}), "run.json");
  CHECK(json.at("startup").at("seconds").number() == doctest::Approx(0.12));
  CHECK(json.at("startup").at("steps").integer() == 1);
  CHECK(json.at("samples_per_second").number() == 200);
  CHECK(json.at("samples_per_second_after_startup").number() == doctest::Approx(100 / 0.38));
  CHECK(json.find("gpu") == nullptr);
  CHECK(json.at("startup").find("shapes_ahead") == nullptr);
  r.rehearsed_shapes = 8;
  r.rehearsal_seconds = 0.25;
  json = json::parse(train::run_json(r, {}), "run.json");
  CHECK(json.at("startup").at("seconds").number() == doctest::Approx(0.37));
  CHECK(json.at("startup").at("shapes_ahead").integer() == 8);
  CHECK(json.at("startup").at("seconds_ahead").number() == 0.25);
  r.work = {.passes = 4, .replays = 3, .queue_seconds = 0.002, .measured = 1, .busy_seconds = 0.001, .kernels = 200};
  json = json::parse(train::run_json(r, {}), "run.json");
  CHECK(json.at("gpu").at("replayed").number() == 0.75);
  CHECK(json.at("gpu").at("queue_ms").number() == 1);
  CHECK(json.at("gpu").at("busy_ms").number() == 2);
  CHECK(json.at("gpu").at("kernels").number() == 100);
  CHECK(json.at("gpu").at("product_ms").number() == 0);
  CHECK(json.at("gpu").find("name") == nullptr);
  r.gpu = {.name = "NVIDIA H200",
           .compute_capability = "9.0",
           .libraries = {{"cuda", "13.0"}, {"cudnn", "9.19.0"}},
           .matmul_precision = "tf32",
           .attention_kernels = "own"};
  auto const gpu = [&] { return json::parse(train::run_json(r, {}), "run.json").at("gpu"); };
  CHECK(gpu().at("name").string() == "NVIDIA H200");
  CHECK(gpu().at("compute_capability").string() == "9.0");
  CHECK(gpu().at("libraries").at("cuda").string() == "13.0");
  CHECK(gpu().at("libraries").at("cudnn").string() == "9.19.0");
  CHECK(gpu().at("matmul_precision").string() == "tf32");
  CHECK(gpu().at("attention").at("kernels").string() == "own");
  CHECK(gpu().at("attention").find("passes_by_cudnn") == nullptr);
  CHECK(gpu().at("attention").find("reason") == nullptr);
  r.gpu.attention_kernels = "cudnn";
  r.gpu.attention_by_cudnn = 30;
  r.gpu.attention_not_by_cudnn = 2;
  r.gpu.attention_reason = "the layout is ragged";
  CHECK(gpu().at("attention").at("kernels").string() == "cudnn");
  CHECK(gpu().at("attention").at("passes_by_cudnn").integer() == 30);
  CHECK(gpu().at("attention").at("passes_not_by_cudnn").integer() == 2);
  CHECK(gpu().at("attention").at("reason").string() == "the layout is ragged");
}

TEST_CASE("without evaluations or steps a run omits them") {
  auto r = record();
  r.evaluations.clear();
  r.steps = 0;
  auto const json = json::parse(train::run_json(r, {}), "run.json");
  CHECK(json.at("final").find("eval_loss") == nullptr);
  CHECK(json.find("best") == nullptr);
  CHECK(json.at("phases_ms").at("forward").number() == 0);
}

TEST_CASE("the file has that text") {
  lockstep_test::TemporaryFolder folder;
  train::write_run_json(folder / "run.json", record(), {});
  CHECK(lockstep_test::read_file(folder / "run.json") == train::run_json(record(), {}));
}
