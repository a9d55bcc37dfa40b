// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/metrics/metric.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <string>

using namespace lockstep;

namespace {
struct Good {
  std::array<double, 1> sum{};
  std::span<double> totals() { return sum; }
  double value() const { return sum[0]; }
  char const* name() const { return "good"; }
};
struct Several {
  std::array<double, 2> sum{};
  std::span<double> totals() { return sum; }
  void values(auto const& each) const {
    for (std::size_t i = 0; i < sum.size(); ++i) each("of_" + std::to_string(i), sum[i]);
  }
  char const* name() const { return "several"; }
};
struct NoValue {
  std::span<double> totals() { return {}; }
  char const* name() const { return "none"; }
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
  CHECK(train::Metric<Several>);
  CHECK_FALSE(train::Metric<NoValue>);
  CHECK_FALSE(train::Metric<NoTotals>);
  CHECK_FALSE(train::Metric<NoName>);
}
