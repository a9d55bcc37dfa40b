// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/logs/metrics_log.hpp>

#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/train/logs/csv_log.hpp>

#include "temporary_folder.hpp"

using namespace lockstep;

namespace {
std::vector<json::Value> logged(Index steps) {
  lockstep_test::TemporaryFolder folder;
  train::MetricsLog log(folder / "metrics.jsonl");
  for (Index step = 1; step <= steps; ++step) log.step({step, steps, 0, 0.5, 1e-3, 8 * step, 0.25, 100});
  log.evaluation({steps, 0, 77, 0.75, {{"accuracy", 0.5}}, 1});
  std::istringstream lines(lockstep_test::read_file(folder / "metrics.jsonl"));  // complete although the log is open
  std::vector<json::Value> out;
  for (std::string line; std::getline(lines, line);) out.push_back(json::parse(line, "line"));
  return out;
}
}  // namespace

TEST_CASE("runs of any length log at least ten steps (or all), including the last one, and every evaluation") {
  for (Index steps : {1, 9, 10, 99, 100, 199, 471, 100'000}) {
    auto const lines = logged(steps);
    auto const count = static_cast<Index>(lines.size()) - 1;
    CHECK(count >= std::min<Index>(steps, 10));
    CHECK(count <= 500);
    CHECK(lines[lines.size() - 2].at("kind").string() == "step");
    CHECK(lines[lines.size() - 2].at("step").integer() == steps);
    CHECK(lines[lines.size() - 2].at("loss").number() == 0.5);
    CHECK(lines.back().at("kind").string() == "evaluation");
    CHECK(lines.back().at("accuracy").number() == 0.5);
    CHECK(lines.back().at("samples").integer() == 77);
  }
}

TEST_CASE("a resumed run continues a log whose evaluations have many metrics") {
  lockstep_test::TemporaryFolder const folder;
  train::EvaluationReport report{.step = 10, .samples = 77, .loss = 0.75};
  std::vector<std::string> names;
  for (int i = 0; i < 60'000; ++i) {  // as of a confusion matrix of 245 classes
    names.push_back("confusion." + std::to_string(i / 245) + "." + std::to_string(i % 245));
    report.metrics.emplace_back(names.back(), 0.1 + i);
  }
  auto const path = folder / "metrics.jsonl";
  train::MetricsLog log(path);
  log.start({.steps = 30, .metrics = names});
  log.evaluation(report);
  auto const first = lockstep_test::read_file(path);
  CHECK(first.size() > std::size_t{1} << 20);
  report.step = 20;
  log.evaluation(report);
  train::MetricsLog again(path);
  again.start({.steps = 30, .resumed = 10, .metrics = names});
  CHECK(lockstep_test::read_file(path) == first);
  train::MetricsLog without(path);
  CHECK_THROWS_WITH_AS(without.start({.steps = 30, .resumed = 10}), doctest::Contains("metrics.jsonl:1: the line is"),
                       DataError);
}

TEST_CASE("a log to a pipe or a device is written there") {
  lockstep_test::TemporaryFolder const folder;
  REQUIRE(::symlink("/dev/null", (folder / "metrics.jsonl").c_str()) == 0);
  train::MetricsLog log(folder / "metrics.jsonl");
  log.start({1, 1, 0, 0, {}, "loss"});
  log.step({1, 1, 0, 0.5, 1e-3, 8, 0.25, 100});
  CHECK(std::filesystem::is_character_file("/dev/null"));
  CHECK(std::filesystem::is_symlink(folder / "metrics.jsonl"));
}

TEST_CASE("a loss scale and a gradient norm are logged if they exist") {
  lockstep_test::TemporaryFolder const folder;
  train::MetricsLog log(folder / "metrics.jsonl");
  log.step({1, 2, 0, 0.5, 1e-3, 8, 0.25, 100});
  log.step({2, 2, 0, 0.5, 1e-3, 16, 0.25, 100, 1024, 3, 1.5});
  std::istringstream lines(lockstep_test::read_file(folder / "metrics.jsonl"));
  std::string first, second;
  std::getline(lines, first), std::getline(lines, second);
  CHECK_FALSE(json::parse(first, "line").find("loss_scale"));
  CHECK_FALSE(json::parse(first, "line").find("gradient_norm"));
  CHECK(json::parse(second, "line").at("gradient_norm").number() == 1.5);
  CHECK(json::parse(second, "line").at("loss_scale").number() == 1024);
  CHECK(json::parse(second, "line").at("skipped_steps").integer() == 3);
}

TEST_CASE("an evaluation that is not finite does not end the run, and is null") {
  lockstep_test::TemporaryFolder const folder;
  train::MetricsLog log(folder / "metrics.jsonl");
  log.evaluation({4, 0, 7, std::nan(""), {{"f1", std::nan("")}, {"far", -std::numeric_limits<double>::infinity()}}, 1});
  auto const line = json::parse(lockstep_test::read_file(folder / "metrics.jsonl"), "line");
  for (char const* name : {"loss", "f1", "far"}) CHECK(line.at(name).is_null());
  CHECK(line.at("samples").integer() == 7);
}

TEST_CASE("a resumed run keeps the lines up to its checkpoint, and a new one keeps none") {
  lockstep_test::TemporaryFolder const folder;
  auto const path = folder / "metrics.jsonl";
  auto const log = [&](Index resumed, Index from, Index to) {
    train::MetricsLog metrics(path);
    metrics.start({12, 3, resumed});
    for (Index step = from; step <= to; ++step) {
      metrics.step({step, 12, (step - 1) / 4, 0.5, 1e-3, 8 * step, 0.25, 100});
      if (step % 4 == 0) metrics.evaluation({step, step / 4 - 1, 77, 0.75, {}, 1});
    }
  };
  log(0, 1, 12);
  auto const whole = lockstep_test::read_file(path);
  CHECK(std::ranges::count(whole, '\n') == 15);
  for (Index resumed : {1, 4, 7, 9}) {
    log(0, 1, 9);
    lockstep_test::write_file(path, lockstep_test::read_file(path) + R"({"kind":"step","st)");  // killed while it wrote
    log(resumed, resumed + 1, 12);
    CHECK(lockstep_test::read_file(path) == whole);
  }
  log(0, 1, 12);
  CHECK(lockstep_test::read_file(path) == whole);
}

TEST_CASE("a line without a step is named, and nothing is changed") {
  lockstep_test::TemporaryFolder const folder;
  auto const path = folder / "metrics.jsonl";
  auto const text = "{\"kind\":\"step\",\"step\":1}\n{\"kind\":\"st\n{\"kind\":\"step\",\"step\":3}\n";
  lockstep_test::write_file(path, text);
  train::MetricsLog log(path);
  CHECK_THROWS_WITH_AS(log.start({12, 3, 7}), doctest::Contains("metrics.jsonl:2: the line has no step"), DataError);
  CHECK(lockstep_test::read_file(path) == text);
}

TEST_CASE_TEMPLATE("an unwritable place is named", Log, train::MetricsLog, train::CsvLog) {
  Log log("/no/such/folder/m");  // created when a run starts
  CHECK_THROWS_WITH_AS(log.start({}), doctest::Contains("/no/such/folder/m: cannot create"), DataError);
}

TEST_CASE_TEMPLATE("a second fit does not overwrite the first", Log, train::MetricsLog, train::CsvLog) {
  lockstep_test::TemporaryFolder const folder;
  Log log(folder / "log");
  log.start({.steps = 2, .epochs = 1});
  log.step({1, 2, 0, 0.5, 1e-3, 8, 0.25, 100});
  log.start({.steps = 2, .epochs = 1, .resumed = 1});  // it continues, as after an error
  log.step({2, 2, 0, 0.5, 1e-3, 16, 0.25, 100});
  auto const before = lockstep_test::read_file(folder / "log");
  std::string const printed = "/log belongs to an earlier fit, and would be overwritten; give each fit a ";
  CHECK_THROWS_WITH_AS(
      log.start({.steps = 2, .epochs = 1}),
      doctest::Contains((printed + (std::is_same_v<Log, train::CsvLog> ? "CsvLog" : "MetricsLog")).c_str()),
      ConfigError);
  CHECK(lockstep_test::read_file(folder / "log") == before);
}

TEST_CASE("a gradient that overflowed in float16 has no norm, and does not end the run") {
  lockstep_test::TemporaryFolder const folder;
  train::MetricsLog log(folder / "metrics.jsonl");
  log.start({.steps = 1, .epochs = 1});
  train::StepReport report{1, 1, 0, 0.5, 1e-3, 8, 0.25, 100};
  report.gradient_norm = std::numeric_limits<double>::infinity();
  log.step(report);
  CHECK(lockstep_test::read_file(folder / "metrics.jsonl").find("\"gradient_norm\":null") != std::string::npos);
}
