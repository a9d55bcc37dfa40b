// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/logs/progress_bar.hpp>

#include <doctest/doctest.h>

#include <string>

#include <lockstep/train/logs/run_record.hpp>

using namespace lockstep;

namespace {
/// Returns a bar's output into a file during a run of `steps` steps with an evaluation at its end.
std::string written(Index steps, std::vector<std::string> unused = {}, Index fewer = 0, double step_seconds = 0.001,
                    std::vector<Index> resumed_at = {}) {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  train::ProgressBar bar(file);
  bar.start({steps, 1});
  for (Index step = 1; step <= steps; ++step)
    bar.step({step, steps, 0, 0.25, 1e-3, step * 8, step_seconds * static_cast<double>(step), 8000});
  bar.evaluation({steps, 0, 10, 0.5, {{"accuracy", 0.875}}, 1, true});
  train::RunRecord record;
  record.steps = steps - fewer;
  record.evaluations = {{1, 4, 10, 0.5, {}, 1, true}, {2, 6, 10, 0.4, {}, 2, true}, {3, 7, 10, 0.6, {}, 3}};
  record.session.unused_parameters = std::move(unused);
  record.resumed_at = std::move(resumed_at);
  bar.finish(record);
  std::string text(static_cast<std::size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  CHECK(std::fread(text.data(), 1, text.size(), file) == text.size());
  std::fclose(file);
  return text;
}
}  // namespace

TEST_CASE("a file gets plain lines, about ten for a run of any length, and no control characters") {
  for (Index steps : {1, 3, 10, 1000}) {
    auto const text = written(steps);
    for (char c : text) CHECK((c == '\n' || c >= ' '));
    auto const lines = std::count(text.begin(), text.end(), '\n');
    CHECK(lines == std::min<Index>(steps, 10) + 1);
    CHECK(text.find("step " + std::to_string(steps) + "/" + std::to_string(steps) + ", loss 0.2500") !=
          std::string::npos);
    CHECK(text.find("epoch 1/1: evaluation loss 0.5000, accuracy 0.8750 over 10 samples") != std::string::npos);
  }
}

TEST_CASE("a progress bar without a stream shows nothing") {
  train::ProgressBar bar(nullptr);
  bar.start({10, 1, 5});
  bar.step({10, 10, 0, 0.25, 1e-3, 80, 100, 8000});
  bar.evaluating({1, 2});
  bar.evaluating({2, 2});
  bar.evaluation({10, 0, 10, 0.5, {}, 1, true});
  train::RunRecord record;
  record.stopped = true;
  record.unreadable_samples = "one";
  record.session.unused_parameters = {"head.weight"};
  bar.finish(record);
}

TEST_CASE("for a metric with many values the line has the first ones") {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  train::ProgressBar bar(file);
  bar.start({1, 1});
  train::EvaluationReport report{1, 0, 10, 0.5, {}, 1, true};
  for (int i = 0; i < 20; ++i) report.metrics.emplace_back("m" + std::to_string(i), i);
  bar.evaluation(report);
  std::string text(static_cast<std::size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  CHECK(std::fread(text.data(), 1, text.size(), file) == text.size());
  std::fclose(file);
  CHECK(text.find(", m7 7.0000 and 12 more metrics over 10 samples\n") != std::string::npos);
  CHECK(text.find("m8") == std::string::npos);
}

TEST_CASE("a bar used for a second fit shows it like the first") {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  train::ProgressBar bar(file);
  for (int fit = 0; fit < 2; ++fit) {
    bar.start({20, 1});
    for (Index step = 1; step <= 20; ++step) bar.step({step, 20, 0, 0.25, 1e-3, step * 8, 0.001, 8000});
  }
  std::string text(static_cast<std::size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  CHECK(std::fread(text.data(), 1, text.size(), file) == text.size());
  std::fclose(file);
  CHECK(std::count(text.begin(), text.end(), '\n') == 20);
}

TEST_CASE("parameters that no step used are named at the end") {
  auto const text = written(1, {"head.weight", "head.bias"});
  CHECK(text.ends_with("\nnote: no step used these parameters, which have not learned: head.weight, head.bias\n"));
}

TEST_CASE("after a resume, only the steps since then have not used the parameters that are named at the end") {
  auto const text = written(9, {"head.weight"}, 0, 0.001, {2, 5});
  CHECK(text.ends_with("\nnote: no step since the resume at step 5 used these parameters: head.weight\n"));
}

TEST_CASE("samples that the loaders skipped or replaced are listed at the end") {
  auto const printed = [](std::string unreadable) {
    std::FILE* file = std::tmpfile();
    REQUIRE(file != nullptr);
    train::RunRecord record;
    record.unreadable_samples = std::move(unreadable);
    train::ProgressBar(file).finish(record);
    std::string text(static_cast<std::size_t>(std::ftell(file)), '\0');
    std::rewind(file);
    CHECK(std::fread(text.data(), 1, text.size(), file) == text.size());
    std::fclose(file);
    return text;
  };
  CHECK(printed("").empty());
  CHECK(printed("1 sample was skipped:\n  a.ppm is empty") == "note: 1 sample was skipped:\n  a.ppm is empty\n");
}

TEST_CASE("a run that ends early reports its best evaluation") {
  CHECK(written(4, {}, 2).ends_with("\nends here: no evaluation was better than the one after epoch 7\n"));
  CHECK(written(4).find("ends here") == std::string::npos);
}

TEST_CASE("a long run writes a line per minute, with the remaining time") {
  auto const text = written(1000, {}, 0, 20);  // more than five hours
  CHECK(std::count(text.begin(), text.end(), '\n') > 300);
  CHECK(text.find("step 2/1000") == std::string::npos);
  CHECK(text.find("step 3/1000, loss 0.2500, 8000 samples/s, 5:32:20 left\n") != std::string::npos);
  CHECK(text.find("step 996/1000, loss 0.2500, 8000 samples/s, 1:20 left\n") != std::string::npos);
  CHECK(text.find("step 1000/1000, loss 0.2500, 8000 samples/s\n") != std::string::npos);
}

TEST_CASE("a short evaluation shows only its result") {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  train::ProgressBar bar(file);
  bar.start({1, 1});
  for (Index batch = 1; batch <= 100; ++batch) bar.evaluating({batch, 100});
  bar.evaluation({1, 0, 10, 0.5, {}, 1, true});
  std::string text(static_cast<std::size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  CHECK(std::fread(text.data(), 1, text.size(), file) == text.size());
  std::fclose(file);
  CHECK(text == "epoch 1/1: evaluation loss 0.5000 over 10 samples\n");
}
