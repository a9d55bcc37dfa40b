// SPDX-License-Identifier: Apache-2.0
#include <lockstep/scaling/scaling_report.hpp>

#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace lockstep;
using scaling::ScalingReport;
using scaling::Workload;

namespace {

// 100 ms of compute, and gradients of 100 MB that are ready evenly.
Workload work() {
  Workload out{.samples = 16, .pass_seconds = 0.1, .optimizer_seconds = 0.001};
  for (int i = 1; i <= 32; ++i) out.gradients.push_back({1e8 / 32, 0.1 * i / 32});
  return out;
}
constexpr scaling::Fabric slow{.latency_seconds = 1e-5, .seconds_per_byte = 1e-8};
constexpr scaling::Fabric fast{.latency_seconds = 1e-7, .seconds_per_byte = 1e-12};

bool contains(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("good scaling is reported up to the last size") {
  ScalingReport const report(work(), fast, ScalingReport::powers_of_two());
  REQUIRE(report.weak().size() == 10);
  CHECK(report.weak().back().ranks == 1024);
  CHECK(report.weak().back().efficiency > 0.9);
  CHECK(report.strong().back().ranks == 16);  // one sample each
  CHECK(contains(report.text(), "predicted, none of it measured"));
  CHECK(contains(report.text(), "up to 1024 ranks, twice the ranks give at least 1.5 times the samples/s"));
  CHECK(report.remedies().empty());
}

TEST_CASE("the size from which ranks stop helping is reported, with the bottleneck and the remedies") {
  ScalingReport const report(work(), slow, ScalingReport::powers_of_two());
  auto const text = report.text();
  CAPTURE(text);
  CHECK(report.weak()[0].efficiency < 0.5);
  CHECK(contains(text,
                 "beyond 1 rank, twice the ranks give less than 1.5 times the samples/s, because of: communication"));
  CHECK(contains(text, "do not help"));
  auto const remedies = report.remedies();
  REQUIRE(remedies.size() >= 2);
  for (std::size_t i = 1; i < remedies.size(); ++i) CHECK(remedies[i - 1].gain >= remedies[i].gain);
  CHECK(contains(text, "twice the bandwidth between ranks"));
  CHECK(contains(text, "twice the --batch-size, 32 samples of each rank"));
  CHECK(contains(text, "changes that would help 2 ranks"));
  CHECK_FALSE(contains(text, "--num-workers"));
}

TEST_CASE("waiting for the loader, and varying steps, have their own remedies") {
  auto slow_data = work();
  slow_data.load_seconds = 0.5;
  CHECK(contains(ScalingReport(slow_data, fast, {2}).remedies()[0].description, "--num-workers"));
  auto uneven = work();
  uneven.spread_seconds = 0.05;
  CHECK(contains(ScalingReport(uneven, fast, {64}).remedies()[0].description, "steps of equal duration"));
}

// The maximum of varying steps on 2 and 4 ranks is 0.589 and 1.049 deviations above the mean, 2.4 and 4.2 ms.
TEST_CASE("the text report has both tables, their conclusion and the remedies") {
  Workload const work{.ranks = 2,
                      .samples = 16,
                      .pass_seconds = 0.1,
                      .optimizer_seconds = 0.02,
                      .other_seconds = 0.004,
                      .spread_seconds = 0.004,
                      .gradients = {{1e6, 0.1}}};
  CHECK(ScalingReport(work, {.latency_seconds = 4e-3, .seconds_per_byte = 5e-9}, {2, 4}).text() ==
        "predicted, none of it measured: ranks that send each other messages of 4000.0 us and 0.200 GB/s (report takes "
        "--alpha-us, --beta-gb-s), each with processors and a loader of its own\n"
        "the same batch for each rank: 16 samples a step\n"
        "     ranks    step ms    exposed ms    samples/s  efficiency  bound by\n"
        "         2      139.4          13.0        229.6        89 %  communication\n"
        "         4      154.2          26.0        415.1        80 %  communication\n"
        "up to 4 ranks, twice the ranks give at least 1.5 times the samples/s\n"
        "the same batch for all together: 32 samples a step\n"
        "     ranks    step ms    exposed ms    samples/s  efficiency  bound by\n"
        "         2      139.4          13.0        229.6        80 %  communication\n"
        "         4      103.0          26.0        310.8        54 %  communication\n"
        "beyond 2 ranks, twice the ranks give less than 1.5 times the samples/s, because of: communication\n"
        "changes that would help 4 ranks with the same batch each, predicted:\n"
        "  + 20 %  twice the --batch-size, 32 samples of each rank in a step\n"
        "  +  5 %  half the time for a message to start\n"
        "  +  3 %  twice the bandwidth between ranks\n"
        "  +  3 %  steps of equal duration: batches of similar length, and no other programs on the hosts\n");
}

TEST_CASE("a report names the source of a link's assumed bandwidth, and nothing about a given one") {
  auto fabric = fast;
  CHECK(contains(ScalingReport(work(), fabric, {2}).text(), "loader of its own\nthe same batch for each rank"));
  fabric.source = "assumed";
  CHECK(contains(ScalingReport(work(), fabric, {2}).text(), "loader of its own\nassumed\nthe same batch"));
}

TEST_CASE("each remedy is evaluated alone") {
  auto both = work();
  both.load_seconds = 0.3, both.spread_seconds = 0.05;
  auto const before = scaling::predict(both, 64, fast).samples_per_second;
  auto faster = both;
  faster.load_seconds /= 2;
  auto const remedies = ScalingReport(both, fast, {64}).remedies();
  REQUIRE(remedies.size() == 1);
  CHECK(contains(remedies[0].description, "--num-workers"));
  CHECK(remedies[0].gain == scaling::predict(faster, 64, fast).samples_per_second / before - 1);
}

TEST_CASE("the first size that loses a fifth is analysed, else the last; measured ranks count their batch") {
  auto const text = [](double spread_seconds) {
    auto uneven = work();
    uneven.ranks = 3, uneven.spread_seconds = spread_seconds;
    ScalingReport const report(uneven, fast, {2, 16, 32, 48, 64});
    CHECK(report.strong().back().ranks == 48);
    return report.text();
  };
  CHECK(contains(text(0.01), "changes that would help 64 ranks"));  // 0.02 of 0.12 seconds
  CHECK(contains(text(0.02), "changes that would help 16 ranks"));  // 0.035 of 0.136
}

TEST_CASE("doubled ranks are compared for each size, however far apart the sizes are") {
  std::vector<scaling::Prediction> sizes(4);
  sizes[0].ranks = 2, sizes[0].samples_per_second = 19;
  sizes[1].ranks = 8, sizes[1].samples_per_second = 19 * 2.3;  // 1.52 times, twice
  sizes[2].ranks = 16, sizes[2].samples_per_second = 19 * 2.3 * 1.4;
  sizes[3].ranks = 32, sizes[3].samples_per_second = 19 * 2.3 * 1.41;
  CHECK(ScalingReport::efficient_until(sizes, 10) == 8);
  CHECK(ScalingReport::efficient_until(sizes, 13) == 1);
  CHECK(ScalingReport::useful_until(sizes, 10) == 16);
  CHECK(ScalingReport::useful_until(sizes, 50) == 16);
  CHECK(ScalingReport::useful_until(sizes, 100) == 1);
}

TEST_CASE("without sizes there are no tables") {
  ScalingReport const report(work(), slow, {});
  CHECK(report.remedies().empty());
  CHECK_FALSE(contains(report.text(), "ranks    step"));
}
