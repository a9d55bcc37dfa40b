// SPDX-License-Identifier: Apache-2.0
// The predictor against the speed-ups that the users' studies published, with at most one fitted constant per model of
// communication. docs/explanation/predicted-studies.md shows the same rows.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/scaling/prediction.hpp>

using namespace lockstep;
using scaling::Workload;

namespace {

/// A published speed-up over one device, and the prediction for a value of the fitted constant.
struct Row {
  std::string name;
  double published = 0;
  std::function<double(double)> predicted;

  [[nodiscard]] double error(double constant) const { return predicted(constant) / published - 1; }
};

/// Returns the constant with the least maximum error over `rows`, from 10 values per percent of [low, high].
double fitted(std::vector<Row> const& rows, double low, double high) {
  double best = low, least = INFINITY;
  for (double constant = low; constant <= high; constant *= 1.001) {
    double most = 0;
    for (auto const& row : rows) most = std::max(most, std::abs(row.error(constant)));
    if (most < least) least = most, best = constant;
  }
  return best;
}

/// Returns the document's row: name, published, predicted, error, and the error if the constant is fitted without the
/// row.
std::string documented(Row const& row, double constant, std::vector<Row> others, double low, double high) {
  std::erase_if(others, [&](Row const& each) { return each.name == row.name; });
  auto const without = others.empty() ? constant : fitted(others, low, high);
  auto const percent = [](double error) { return static_cast<int>(std::lround(100 * error)); };
  char text[200];
  std::snprintf(text, sizeof text, "| %s | %.2f | %.2f | %+d %% | %+d %% |", row.name.c_str(), row.published,
                row.predicted(constant), percent(row.error(constant)), percent(row.error(without)));
  return text;
}

std::string page() {
  std::ifstream in(std::string(LOCKSTEP_SOURCE_DIR) + "/docs/explanation/predicted-studies.md");
  return {std::istreambuf_iterator<char>(in), {}};
}

void check_rows(std::vector<Row> const& rows, double constant, double low, double high) {
  auto const text = page();
  for (auto const& row : rows) {
    CAPTURE(row.name);
    CHECK(row.predicted(constant) == doctest::Approx(row.published).epsilon(0.15).scale(0));
    auto const line = documented(row, constant, rows, low, high);
    CHECK_MESSAGE(text.find(line + "\n") != std::string::npos, "docs/explanation/predicted-studies.md lacks ", line);
  }
}

/// Checks that the page has the fitted constant in the form of `format`.
void check_constant(char const* format, double value) {
  char text[100];
  std::snprintf(text, sizeof text, format, value);
  CHECK_MESSAGE(page().find(text) != std::string::npos, "docs/explanation/predicted-studies.md lacks ", text);
}

/// Sizes of a transformer classifier of the text study.
struct TextModel {
  double width, layers, feed_forward, length, batch;
  double vocabulary = 20'000;
};
constexpr double flop_per_second = 1e13;  // assumed; only its ratio to the fitted bandwidth matters

/// Returns the work of one rank whose gradients are all dense, as in PyTorch. Matrix products take all of the time.
Workload work_of(TextModel const& model) {
  auto const d = model.width, layer = 4 * d * d + 2 * d * model.feed_forward;
  auto const tokens = model.batch * model.length;
  Workload work{.samples = model.batch};
  work.pass_seconds = tokens * model.layers * (6 * layer + 12 * model.length * d) / flop_per_second;
  for (double i = 1; i <= model.layers; ++i)
    work.gradients.push_back({4 * layer, work.pass_seconds * (1 + 2 * i / model.layers) / 3});
  work.gradients.push_back({4 * (model.vocabulary + model.length) * d, work.pass_seconds});  // the embedding comes last
  return work;
}

/// Returns the speed-up of ranks with a batch each, over links of that many GB/s.
Row over_links(std::string name, double published, TextModel const& model, Index ranks) {
  return {std::move(name), published, [work = work_of(model), ranks](double gb_per_second) {
            auto const fabric = scaling::Fabric::of(scaling::Link::pcie_4, true, {}, gb_per_second);
            return predict(work, ranks, fabric).samples_per_second / predict(work, 1, fabric).samples_per_second;
          }};
}

/// Returns the speed-up of a PyTorch DataParallel that cuts one batch, and whose copies of parameters and outputs take
/// `constant` of a single device's step. None of it overlaps with the passes.
Row data_parallel(std::string name, double published, Index devices) {
  return {std::move(name), published, [devices](double constant) {
            Workload const work{.samples = 64, .pass_seconds = 1};
            auto const predicted = predict(work, devices, parallel::CollectiveCost{constant, 0},
                                           scaling::Scaling::strong, scaling::Overlap::none);
            return predicted.samples_per_second / work.samples;
          }};
}

/// Returns the speed-up of ranks with a batch each, in a ring whose messages take `constant` of a single device's step.
Row distributed(std::string name, double published, Index ranks) {
  return {std::move(name), published, [ranks](double constant) {
            Workload const work{.samples = 64, .pass_seconds = 1, .gradients = {{4.0 * 127'174, 1}}};
            scaling::Fabric const ring{
                .latency_seconds = constant, .seconds_per_byte = 0, .all_reduce = scaling::AllReduce::ring};
            return predict(work, ranks, ring).samples_per_second / work.samples;
          }};
}

std::vector<Row> data_parallel_rows() {
  return {data_parallel("DataParallel, 2 GPUs", 1.7, 2), data_parallel("DataParallel, 4 GPUs", 3.0, 4)};
}

}  // namespace

TEST_CASE("the text study's speed-ups and its remedy follow from model sizes and one bandwidth") {
  TextModel const small{128, 2, 256, 128, 32}, large{256, 4, 1024, 256, 128};
  auto remedy = large;
  remedy.length = small.length;
  std::vector<Row> const rows{over_links("AG News, width 128, 2 layers, batch 32", 0.46, small, 4),
                              over_links("IMDB, width 256, 4 layers, batch 128", 3.49, large, 4),
                              over_links("AG News with the model and batch of IMDB", 3.0, remedy, 4)};
  auto const bandwidth = fitted(rows, 0.5, 20);
  check_rows(rows, bandwidth, 0.5, 20);
  check_constant("**%.1f GB/s**", bandwidth);
  auto const remedied = rows[2].predicted(bandwidth);  // published as a range
  CHECK(remedied >= 2.8);
  CHECK(remedied <= 3.2);
}

TEST_CASE("the activity study's table follows from one constant for DataParallel and one for DDP") {
  auto const scattered = data_parallel_rows();
  auto const share = fitted(scattered, 0.01, 1);
  check_rows(scattered, share, 0.01, 1);
  check_constant("**%.3f of a step**", share);
  std::vector<Row> const ranks{distributed("DDP, 2 GPUs", 2.0, 2), distributed("DDP, 4 GPUs", 4.0, 4),
                               distributed("DDP, 8 GPUs", 7.3, 8)};
  auto const message = fitted(ranks, 0.0001, 0.1);
  check_rows(ranks, message, 0.0001, 0.1);
  check_constant("**%.4f of a step**", message);
}

TEST_CASE("the video study's speed-up follows from the activity study's constant, without one of its own") {
  auto const share = fitted(data_parallel_rows(), 0.01, 1);
  auto const video = data_parallel("DataParallel, 3 GPUs", 2.5, 3);
  check_rows({video}, share, 0.01, 1);
}
