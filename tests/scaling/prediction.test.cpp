// SPDX-License-Identifier: Apache-2.0
#include <lockstep/scaling/prediction.hpp>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "parallel/delayed_communicator.hpp"

using namespace lockstep;
using parallel::CollectiveCost;
using scaling::Overlap;
using scaling::Scaling;
using scaling::Workload;

namespace {

// Backward of layers of one MiB; `seconds` of each, in the order in which their gradients are ready.
constexpr Index elements = 1 << 18;
struct Backward {
  std::vector<double> seconds;

  [[nodiscard]] std::size_t size() const { return seconds.size() * elements; }
  template <class Communicator>
  void run(parallel::GradientBuckets& buckets, Communicator& communicator) const {
    for (std::size_t layer = 0; layer < seconds.size(); ++layer) {
      communicator.compute(seconds[layer]);
      buckets.ready(communicator, static_cast<Index>(layer) * elements, elements);
    }
  }
};

/// A run on one rank, whose gradients have given ready times and are not sent.
struct Alone {
  double now = 0;
  void compute(double seconds) { now += seconds; }
};
Workload measured_alone(Backward const& backward) {
  std::unique_ptr<float[]> const arena(new float[backward.size()]);  // no rank uses it
  parallel::GradientBuckets parts({arena.get(), backward.size()}, backward.size() * sizeof(float) / 32);
  parts.begin_step();
  Alone alone;
  for (std::size_t layer = 0; layer < backward.seconds.size(); ++layer) {
    alone.compute(backward.seconds[layer]);
    parts.fill(static_cast<Index>(layer) * elements, elements, alone.now,
               [](std::size_t, comm::CollectiveOperation&) {});
  }
  Workload work{.pass_seconds = alone.now};
  for (auto const& part : parts.times()) work.gradients.push_back({static_cast<double>(part.bytes), part.ready});
  return work;
}

/// Returns the seconds of a step of ranks whose all-reduces take `cost`, as in DistributedDataParallel.
double measured_together(Backward const& backward, CollectiveCost const& cost) {
  std::unique_ptr<float[]> const arena(new float[backward.size()]);
  parallel::GradientBuckets buckets({arena.get(), backward.size()}, cost.bucket_bytes(backward.size() * sizeof(float)));
  DelayedCommunicator communicator{cost.latency_seconds, cost.seconds_per_byte};
  auto const began = communicator.now;
  buckets.begin_step();
  backward.run(buckets, communicator);
  buckets.finish(communicator);
  return communicator.now - began;
}

// One small bucket of 1000 bytes, ready at the end.
Workload small() { return {.samples = 8, .pass_seconds = 1, .optimizer_seconds = 0.5, .gradients = {{1000, 1}}}; }

}  // namespace

TEST_CASE("a step over a network is predicted within 3 % from one rank's gradient ready times") {
  Backward even{std::vector<double>(96, 1.0 / 96)}, late = even, early = even;
  for (std::size_t i = 0; i < 48; ++i) late.seconds[i + 48] *= 9, early.seconds[i] *= 9;
  int compared = 0;
  for (auto const* backward : {&even, &late, &early}) {
    auto const work = measured_alone(*backward);
    for (auto const& cost : {CollectiveCost{2e-6, 1e-10}, {50e-6, 1e-9}, {1e-3, 1e-8}, {20e-3, 1e-8}, {5e-6, 1e-7}}) {
      CAPTURE(cost.latency_seconds);
      auto const measured = measured_together(*backward, cost);
      auto const predicted = predict(work, 2, cost).step_seconds;
      CHECK(predicted == doctest::Approx(measured).epsilon(0.03).scale(0));
      ++compared;
    }
  }
  CHECK(compared == 15);
}

TEST_CASE("a 16-bit wire format sends half the bytes, in buckets of its own size") {
  Backward const even{std::vector<double>(96, 1.0 / 96)};
  CollectiveCost const cost{1e-3, 1e-8};
  std::unique_ptr<float[]> const arena(new float[even.size()]);
  struct Halved : parallel::detail::InPlace {
    [[nodiscard]] static constexpr ElementType type() noexcept { return ElementType::bfloat16; }
  } const wire{{arena.get()}};
  auto const bytes = even.size() * 2;
  parallel::GradientBuckets buckets(wire, static_cast<Index>(even.size()),
                                    static_cast<Index>(cost.bucket_bytes(bytes) / 2), {}, 0, 1);
  DelayedCommunicator communicator{cost.latency_seconds, cost.seconds_per_byte};
  auto const began = communicator.now;
  buckets.begin_step();
  even.run(buckets, communicator);
  buckets.finish(communicator);
  auto work = measured_alone(even);
  work.gradient_bytes = 2;
  for (auto& part : work.gradients) part.bytes /= 2;
  CHECK(predict(work, 2, cost).step_seconds == doctest::Approx(communicator.now - began).epsilon(0.03).scale(0));
  CHECK(predict(work, 2, cost).exposed_seconds < 0.5 * predict(measured_alone(even), 2, cost).exposed_seconds);
}

TEST_CASE("a small model's only bucket is sent after backward") {
  auto const work = small();
  CollectiveCost const cost{0.25, 1e-3};
  CHECK(predict(work, 1, cost).step_seconds == 1.5);
  auto const two = predict(work, 2, cost);
  CHECK(two.exposed_seconds == doctest::Approx(1.25));
  CHECK(two.step_seconds == doctest::Approx(2.75));
  CHECK(two.samples_per_second == doctest::Approx(16 / 2.75));
  CHECK(two.efficiency == doctest::Approx(1.5 / 2.75));
  CHECK(std::string(two.bound) == "communication");
  auto const parts = Workload{.pass_seconds = 1, .gradients = {{8e5, 0.1}, {2e5, 1}}};
  CHECK(predict(parts, 2, CollectiveCost{0, 1e-6}).exposed_seconds == doctest::Approx(1));
}

TEST_CASE("the bottleneck is the ranks' largest loss or, if losses are small, the longest phase") {
  auto const bound = [](double seconds) { return std::string(predict(small(), 2, CollectiveCost{seconds, 0}).bound); };
  CHECK(bound(0.01) == "compute");
  CHECK(bound(0.25) == "communication");  // less than passes and optimizer take, but one rank takes those as well
}

TEST_CASE("processors' own work is not overlapped") {
  Workload work{.pass_seconds = 1, .gradients = {{4e6, 0.1}, {4e6, 0.2}, {8, 1}}};
  CollectiveCost const cost{0, 1e-8};
  CHECK(predict(work, 2, cost, Scaling::weak, Overlap::none).exposed_seconds == doctest::Approx(8e-2).epsilon(1e-3));
  CHECK(predict(work, 2, cost).exposed_seconds < 3e-2);
}

TEST_CASE("with equal samples overall, passes get shorter, and optimizer and all-reduces do not") {
  auto work = small();
  work.ranks = 2;  // 8 samples each
  CollectiveCost const cost{0.25, 0};
  auto const four = predict(work, 4, cost, Scaling::strong);
  CHECK(four.pass_seconds == 0.5);
  CHECK(four.step_seconds == doctest::Approx(0.5 + 0.25 + 0.5));
  CHECK(four.samples_per_second == doctest::Approx(16 / 1.25));
  CHECK(four.efficiency == doctest::Approx(2.5 / 1.25 / 4));
  CHECK(std::string(four.bound) == "optimizer");
}

TEST_CASE("a loader slower than the rest determines the step") {
  auto work = small();
  work.load_seconds = 2;
  auto const alone = predict(work, 1, CollectiveCost{});
  CHECK(alone.step_seconds == 2);
  CHECK(alone.data_seconds == 0.5);
  CHECK(std::string(alone.bound) == "compute");
  auto const two = predict(work, 2, CollectiveCost{0.25, 0});
  CHECK(two.data_seconds == 0.25);
  CHECK(two.efficiency == 1);
  CHECK(predict(work, 2, CollectiveCost{}, Scaling::strong).data_seconds == 0);  // it loads half as many
  work.load_seconds = 5;
  CHECK(std::string(predict(work, 1, CollectiveCost{}).bound) == "data");
  // Ranks that lose to communication lose nothing to a loader's wait of equal length.
  CHECK(std::string(predict(work, 2, CollectiveCost{4.5, 0}).bound) == "communication");
}

TEST_CASE("more ranks have a longer maximum of varying steps") {
  auto work = small();
  work.spread_seconds = 0.5;
  CHECK(predict(work, 1, CollectiveCost{}).slowest_seconds == 0);
  // The maximum of two and of a thousand normal numbers is 0.5642 and 3.241 deviations above the mean; the
  // approximation is within 5 %.
  CHECK(predict(work, 2, CollectiveCost{}).slowest_seconds == doctest::Approx(0.5 * 0.5642).epsilon(0.05));
  auto const many = predict(work, 1000, CollectiveCost{});
  CHECK(many.slowest_seconds == doctest::Approx(0.5 * 3.241).epsilon(0.05));
  CHECK(std::string(many.bound) == "slowest rank");
  CHECK(many.step_seconds == doctest::Approx(1.5 + many.slowest_seconds));
  // Blom's: the quantiles of (n - 0.375) / (n + 0.25).
  for (auto const& [n, deviations] : {std::pair{2, 0.589456}, {4, 1.049131}, {10, 1.546635}, {1000, 3.227290}})
    CHECK(scaling::detail::expected_maximum(n) == doctest::Approx(deviations).epsilon(1e-6));
  // With half the samples they differ by less: variances add up.
  CHECK(predict(work, 2, CollectiveCost{}, Scaling::strong).slowest_seconds ==
        doctest::Approx(0.5 * std::sqrt(0.5) * 0.589456));
}

TEST_CASE("ranks send the rows of a table that any of them touched, after all other gradients") {
  auto work = small();
  work.gradients.push_back({100, 1, 1000});  // one in ten rows
  CollectiveCost const cost{0, 1e-3};
  CHECK(predict(work, 2, cost).exposed_seconds == doctest::Approx(1 + 1 - 0.9 * 0.9));
  CHECK(predict(work, 1024, cost).exposed_seconds == doctest::Approx(2));
  CHECK(predict(work, 1024, cost, Scaling::strong).exposed_seconds == doctest::Approx(1 + 0.1));
  work.gradients[0].ready_seconds = 0.5;  // it is sent then, however late the table is known
  std::swap(work.gradients[0], work.gradients[1]);
  CHECK(predict(work, 2, cost).exposed_seconds == doctest::Approx(0.5 + 1 - 0.9 * 0.9));
  work = small(), work.gradients.push_back({100, 1, 1000});
  work.ranks = 2;  // their samples together touched that row
  CHECK(predict(work, 4, cost).exposed_seconds == doctest::Approx(1 + 1 - 0.9 * 0.9));
}

TEST_CASE("the faster of ring and tree is used, unless one is chosen") {
  auto const work = small();
  scaling::Fabric fabric{.latency_seconds = 1e-3, .seconds_per_byte = 1e-9};
  auto const step = [&](scaling::AllReduce how, Index ranks) {
    fabric.all_reduce = how;
    return predict(work, ranks, fabric).step_seconds;
  };
  using enum scaling::AllReduce;
  CHECK(step(ring, 1024) > step(tree, 1024));
  CHECK(step(fastest, 1024) == step(tree, 1024));
  CHECK(step(ring, 2) < step(tree, 2));
  CHECK(step(fastest, 2) == step(ring, 2));
}

TEST_CASE("a model without parameters still reduces its loss") {
  Workload const work{.pass_seconds = 1};
  auto const two = predict(work, 2, CollectiveCost{0.5, 1});
  CHECK(two.exposed_seconds == 0.5);
  CHECK(two.ranks == 2);
  CHECK(predict(work, 2, CollectiveCost{0.5, 1}, Scaling::strong).exposed_seconds == 0.5);
  auto const nothing = predict(Workload{}, 2, CollectiveCost{});
  CHECK(nothing.samples_per_second == 0);
  CHECK(nothing.efficiency == 0);
}
