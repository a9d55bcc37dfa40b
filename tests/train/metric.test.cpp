// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/metric.hpp>

#include <doctest/doctest.h>

#include <array>

using namespace lockstep;

namespace {
struct Good {
  std::array<double, 1> sum{};
  std::span<double> totals() { return sum; }
  double value() const { return sum[0]; }
  char const* name() const { return "good"; }
};
struct NoTotals {
  double value() const { return 0; }
  char const* name() const { return "bad"; }
};
struct NoName : Good {
  char const* name() const = delete;
};
}  // namespace

TEST_CASE("a metric has totals that add up, a value and a name") {
  CHECK(train::Metric<Good>);
  CHECK_FALSE(train::Metric<NoTotals>);
  CHECK_FALSE(train::Metric<NoName>);
}
