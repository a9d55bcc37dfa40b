// SPDX-License-Identifier: Apache-2.0
#include <lockstep/scaling/compared_run.hpp>

#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/train/logs/run_json.hpp>

#include "temporary_folder.hpp"

using namespace lockstep;
using lockstep_test::TemporaryFolder;
using lockstep_test::write_file;
using scaling::Agreement;
using scaling::ComparedRun;

namespace {

struct Made {
  std::string parallel = "ddp", sha256 = "aaaa", lr = "0.001", threads = "1";
  int ranks = 2;
  Index steps = 10, batch = 64;
  double loss = 0.3;
  std::vector<std::pair<std::string, double>> metrics{{"f1", 0.7}, {"accuracy", 0.9}};
  bool evaluated = true;
};
ComparedRun run(std::string const& name, Made const& made) {
  train::RunRecord r;
  r.parallel = made.parallel;
  r.world_size = made.ranks;
  r.effective_batch_size = made.batch;
  r.steps = made.steps;
  r.samples = made.steps * made.batch;
  r.training_seconds = 2;
  r.step_seconds = {0.2};
  r.phases = {.forward = 0.3, .backward = 0.6, .optimizer = 0.1};
  r.session.peak_bytes_per_device = {3000, 2000};
  train::EvaluationReport report;
  report.loss = made.loss;
  report.samples = 10;
  report.metrics = made.metrics;
  if (made.evaluated) r.evaluations = {report};
  TemporaryFolder const folder;
  std::filesystem::create_directory(folder / name);
  train::RunLabels const labels{.parameters_sha256 = made.sha256,
                                .settings = {{"lr", made.lr}, {"threads", made.threads}}};
  write_file(folder / (name + "/run.json"), train::run_json(r, labels));
  return ComparedRun::read(folder / name);
}

}  // namespace

TEST_CASE("a row has the fields of a saved run") {
  auto const row = run("two", {});
  CHECK(row.name == "two");
  CHECK(row.parallel == "ddp");
  CHECK(row.ranks == 2);
  CHECK(row.shards == 2);
  CHECK(row.steps == 10);
  CHECK(row.training_seconds == doctest::Approx(2));
  CHECK(row.loss == doctest::Approx(0.3));
  CHECK(row.metric == "accuracy");
  CHECK(row.metric_value == doctest::Approx(0.9));
  CHECK(row.device_bytes == std::vector<double>{3000, 2000});
  CHECK(row.settings.size() == 1);  // threads make no difference
}

TEST_CASE("a run without accuracy is compared by its first metric, or by none") {
  auto const row = run("one", {.metrics = {{"chrf", 40}, {"bleu", 20}}});
  CHECK(row.metric == "chrf");
  CHECK(row.metric_value == 40);
  auto const none = run("one", {.metrics = {}});
  CHECK(none.metric == "accuracy");
  CHECK(std::isnan(none.metric_value));
}

TEST_CASE("runs with equal numbers of shards are compared by bits, others by the evaluation loss") {
  auto const first = run("first", {});
  CHECK(run("second", {.threads = "4"}).agreement(first) == Agreement::equal);
  CHECK(run("second", {.sha256 = "bbbb"}).agreement(first) == Agreement::none);
  CHECK(run("second", {.sha256 = "bbbb", .ranks = 4, .loss = 0.31}).agreement(first) == Agreement::rounding);
  CHECK(run("second", {.sha256 = "bbbb", .ranks = 4, .loss = 0.34}).agreement(first) == Agreement::none);
  CHECK(run("second", {.sha256 = "bbbb", .ranks = 4, .loss = std::nan("")}).agreement(first) == Agreement::none);
  CHECK(run("second", {.sha256 = "bbbb", .steps = 5}).agreement(first) == Agreement::other_work);
  auto const faster = run("second", {.lr = "0.002"});
  CHECK(faster.agreement(first) == Agreement::other_settings);
  CHECK(faster.agreement_summary(first) == "second need not agree with first: it has lr 0.002 (0.001).");
  CHECK(run("second", {.sha256 = "b", .ranks = 4, .loss = 0.34}).agreement_summary(first) ==
        "second and first DISAGREE: their evaluation losses are 0.0400 apart (at most 0.02 is due to rounding).");
}

TEST_CASE("runs without an evaluation are compared by bits, if rounding cannot explain other parameters") {
  auto const first = run("first", {.evaluated = false});
  CHECK(first.training_seconds == doctest::Approx(2));
  CHECK(std::isnan(first.loss));
  CHECK(run("second", {.evaluated = false}).agreement(first) == Agreement::equal);
  auto const other = run("second", {.sha256 = "bbbb", .evaluated = false});
  CHECK(other.agreement(first) == Agreement::none);
  CHECK(other.agreement_summary(first) == "second and first DISAGREE: their parameters should be equal bit for bit.");
  auto const more = run("second", {.sha256 = "bbbb", .ranks = 4});
  CHECK(more.agreement(first) == Agreement::unknown);
  CHECK(more.agreement_summary(first) ==
        "second and first cannot be compared: their parameters may differ by rounding, and there is no evaluation of "
        "both.");
}

TEST_CASE("a run is compared with an earlier one that should have equal bits, else with the first") {
  std::vector<ComparedRun> const runs{run("single", {.ranks = 1}), run("dp", {}), run("ddp", {}),
                                      run("four", {.ranks = 4}), run("ten", {.steps = 100})};
  CHECK(ComparedRun::reference_run(runs, 1).name == "single");
  CHECK(ComparedRun::reference_run(runs, 2).name == "dp");
  CHECK(ComparedRun::reference_run(runs, 3).name == "single");
  CHECK(ComparedRun::reference_run(runs, 4).name == "single");
}
