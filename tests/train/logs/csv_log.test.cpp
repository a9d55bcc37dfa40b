// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/logs/csv_log.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "temporary_folder.hpp"

using namespace lockstep;
using lockstep_test::read_file;
using lockstep_test::write_file;

namespace {

std::string const names =
    "kind,step,epoch,loss,learning_rate,samples,samples_per_second,seconds,loss_scale,skipped_steps,gradient_norm";

/// Returns the cells of each row; no cell in these tests is quoted, except names.
std::vector<std::vector<std::string>> rows(std::string const& text) {
  std::vector<std::vector<std::string>> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    out.emplace_back();
    std::istringstream cells(line + ",");
    for (std::string cell; std::getline(cells, cell, ',');) out.back().push_back(cell);
  }
  return out;
}

}  // namespace

TEST_CASE("a row for each logged step and each evaluation, with a cell for each column") {
  lockstep_test::TemporaryFolder const folder;
  train::CsvLog log(folder / "metrics.csv");
  log.start({2, 1, 0, 0, {"accuracy", "f1"}});
  log.step({1, 2, 0, 0.5, 1e-3, 8, 0.25, 100});
  log.step({2, 2, 0, 0.25, 1e-3, 16, 0.5, 64, 1024, 3, 1.5});
  log.evaluation({2, 0, 77, 0.75, {{"f1", 0.125}, {"accuracy", 0.5}}, 1});
  log.evaluation({2, 0, 77, 0.75, {{"f1", 1}}, 1});
  CHECK(read_file(folder / "metrics.csv") == names +
                                                 ",accuracy,f1\n"  // complete although the log is open
                                                 "step,1,0,0.5,0.001,8,100,0.25,,,,,\n"
                                                 "step,2,0,0.25,0.001,16,64,0.5,1024,3,1.5,,\n"
                                                 "evaluation,2,0,0.75,,77,,1,,,,0.5,0.125\n"
                                                 "evaluation,2,0,0.75,,77,,1,,,,,1\n");
}

TEST_CASE("a run of many metrics writes its evaluations, and continues its table after a resume") {
  lockstep_test::TemporaryFolder const folder;
  train::EvaluationReport report{.step = 10, .samples = 77, .loss = 0.75};
  std::vector<std::string> metrics;
  for (int i = 0; i < 300'000; ++i) {  // as of a confusion matrix of 548 classes
    metrics.push_back("confusion." + std::to_string(i / 548) + "." + std::to_string(i % 548));
    report.metrics.emplace_back(metrics.back(), i);
  }
  train::CsvLog log(folder / "metrics.csv");
  log.start({.steps = 30, .metrics = metrics});
  log.evaluation(report);
  auto const first = read_file(folder / "metrics.csv");
  CHECK(first.ends_with(",299998,299999\n"));
  report.step = 20;
  log.evaluation(report);
  train::CsvLog again(folder / "metrics.csv");
  again.start({.steps = 30, .resumed = 10, .metrics = metrics});
  CHECK(read_file(folder / "metrics.csv") == first);
}

TEST_CASE("a long run logs the steps at the observers' interval") {
  lockstep_test::TemporaryFolder const folder;
  train::CsvLog log(folder / "metrics.csv");
  log.start({1000, 1, 0});
  for (Index step = 1; step <= 1000; ++step) log.step({step, 1000, 0, 0.5, 1e-3, 8 * step, 0.25, 100});
  auto const table = rows(read_file(folder / "metrics.csv"));
  REQUIRE(table.size() == 1 + 190);
  CHECK(table.back()[1] == "1000");
}

TEST_CASE("numbers are read back with equal bits, and NaN and infinity are distinguishable") {
  lockstep_test::TemporaryFolder const folder;
  train::CsvLog log(folder / "metrics.csv");
  log.start({1, 1, 0, 0, {"metric"}});
  std::vector<double> const values{
      0.1, 1.0 / 3, 1e-300, 123456789012345678.0, -0.0, std::numeric_limits<double>::denorm_min()};
  for (auto const value : values) log.evaluation({1, 0, 1, value, {{"metric", -value}}, 1});
  auto const nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  log.evaluation({1, 0, 1, nan, {{"metric", infinity}}, 1});
  auto const table = rows(read_file(folder / "metrics.csv"));
  REQUIRE(table.size() == 1 + values.size() + 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    REQUIRE(table[i + 1].size() == 12);
    auto const loss = std::strtod(table[i + 1][3].c_str(), nullptr);
    auto const metric = std::strtod(table[i + 1][11].c_str(), nullptr);
    CHECK(loss == values[i]);
    CHECK(std::signbit(loss) == std::signbit(values[i]));
    CHECK(metric == -values[i]);
  }
  CHECK(table.back()[3] == "nan");
  CHECK(table.back()[11] == "inf");
}

TEST_CASE("a resumed run keeps the rows up to its checkpoint and the one header, and a new one keeps none") {
  lockstep_test::TemporaryFolder const folder;
  auto const path = folder / "metrics.csv";
  auto const log = [&](Index resumed, Index from, Index to) {
    train::CsvLog metrics(path);
    metrics.start({12, 3, resumed, 0, {"accuracy"}});
    for (Index step = from; step <= to; ++step) {
      metrics.step({step, 12, (step - 1) / 4, 0.5, 1e-3, 8 * step, 0.25, 100});
      if (step % 4 == 0) metrics.evaluation({step, step / 4 - 1, 77, 0.75, {{"accuracy", 0.5}}, 1});
    }
  };
  log(0, 1, 12);
  auto const whole = read_file(path);
  CHECK(std::ranges::count(whole, '\n') == 1 + 15);
  for (Index resumed : {1, 4, 7, 9}) {
    log(0, 1, 9);
    write_file(path, read_file(path) + "step,1");  // killed during a write
    log(resumed, resumed + 1, 12);
    CHECK(read_file(path) == whole);
  }
  log(0, 1, 12);
  CHECK(read_file(path) == whole);

  write_file(path, "kind,st");  // killed before its first row
  log(9, 10, 12);
  CHECK(read_file(path).starts_with(names + ",accuracy\nstep,10,"));
}

TEST_CASE("a run is not resumed in a file with other columns, or in a damaged one") {
  lockstep_test::TemporaryFolder const folder;
  auto const path = folder / "metrics.csv";
  auto const start = [&](Index resumed, std::vector<std::string> metrics) {
    train::CsvLog(path).start({12, 3, resumed, 0, std::move(metrics)});
  };
  start(0, {"accuracy"});
  CHECK_THROWS_WITH_AS(start(4, {"f1"}), doctest::Contains("accuracy\", but the resumed run has"), DataError);
  start(4, {"accuracy"});
  write_file(path, names + "\nstep,1,0\nstep,one,0\n");
  CHECK_THROWS_WITH_AS(start(4, {}), doctest::Contains("metrics.csv: row 3 does not begin with a kind and a step"),
                       DataError);
  start(0, {"f1"});  // begins its own table
  CHECK(read_file(path) == names + ",f1\n");
  start(0, {R"(top "1", of 5)"});
  CHECK(read_file(path) == names + R"(,"top ""1"", of 5")" + "\n");
}
