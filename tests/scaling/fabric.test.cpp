// SPDX-License-Identifier: Apache-2.0
#include <lockstep/scaling/fabric.hpp>

#include <string>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {
constexpr scaling::Fabric fabric{.latency_seconds = 3, .seconds_per_byte = 0.5};
}

TEST_CASE("a ring takes two messages for each other rank, and nearly twice the bytes") {
  for (Index const ranks : {2, 3, 4, 1024}) {
    auto const cost = fabric.ring(ranks);
    auto const n = static_cast<double>(ranks);
    CHECK(cost.latency_seconds == doctest::Approx(3 * 2 * (n - 1)));
    CHECK(cost.seconds_per_byte == doctest::Approx((n - 1) / n));
  }
}

TEST_CASE("a tree takes two messages for each of its levels, and twice the bytes") {
  for (auto const& [count, levels] : {std::pair{2, 1}, {3, 2}, {4, 2}, {5, 3}, {1024, 10}, {1025, 11}}) {
    Index const ranks = count;
    CAPTURE(ranks);
    CHECK(fabric.tree(ranks).latency_seconds == 3 * 2.0 * levels);
    CHECK(fabric.tree(ranks).seconds_per_byte == 1);
  }
}

TEST_CASE("one rank sends nothing") {
  for (auto const& cost : {fabric.ring(1), fabric.tree(1)}) {
    CHECK(cost.latency_seconds == 0);
    CHECK(cost.seconds_per_byte == 0);
  }
}

TEST_CASE("links have the bandwidths of their data sheets, and flags override them") {
  using scaling::Fabric, scaling::Link;
  auto const gb = [](Fabric const& of) { return 1e-9 / of.seconds_per_byte; };
  CHECK(gb(Fabric::of(Link::automatic)) == doctest::Approx(1.25));
  CHECK(gb(Fabric::of(Link::ethernet_10)) == doctest::Approx(1.25));
  CHECK(gb(Fabric::of(Link::network_100)) == doctest::Approx(12.5));
  CHECK(gb(Fabric::of(Link::network_400)) == doctest::Approx(50));
  CHECK(gb(Fabric::of(Link::pcie_4)) == doctest::Approx(31.5));
  CHECK(gb(Fabric::of(Link::pcie_5)) == doctest::Approx(63));
  CHECK(gb(Fabric::of(Link::nvlink_3)) == doctest::Approx(300));
  CHECK(gb(Fabric::of(Link::nvlink_4)) == doctest::Approx(450));
  auto const given = Fabric::of(Link::nvlink_4, true, 2, 400);
  CHECK(given.latency_seconds == doctest::Approx(2e-6));
  CHECK(gb(given) == doctest::Approx(400));
  CHECK(*given.source == '\0');
}

TEST_CASE("GPUs without a known link get PCIe 4.0's bandwidth, and the report marks it as assumed") {
  using scaling::Fabric, scaling::Link;
  auto const assumed = Fabric::of(Link::automatic, true, {}, {});
  CHECK(assumed.seconds_per_byte == Fabric::of(Link::pcie_4).seconds_per_byte);
  CHECK(std::string(assumed.source).find("assumed, as of PCIe 4.0") != std::string::npos);
  CHECK(std::string(assumed.source).find("--link nvlink_4") != std::string::npos);
  for (auto const& other : {Fabric::of(Link::automatic, false, {}, {}), Fabric::of(Link::pcie_5, true, {}, {}),
                            Fabric::of(Link::automatic, true, {}, 20)})
    CHECK(*other.source == '\0');
  CHECK(Fabric::of(Link::automatic, false, {}, {}).seconds_per_byte == Fabric{}.seconds_per_byte);
}

TEST_CASE("the model of a measured all-reduce reproduces its time for an equal number of ranks") {
  parallel::CollectiveCost const cost{.latency_seconds = 3e-5, .seconds_per_byte = 2e-11};
  for (Index const ranks : {2, 8}) {
    auto const again = scaling::Fabric::measured(cost, ranks).ring(ranks);
    CHECK(again.latency_seconds == doctest::Approx(3e-5));
    CHECK(again.seconds_per_byte == doctest::Approx(2e-11));
  }
}
