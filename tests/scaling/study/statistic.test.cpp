// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include <lockstep/scaling/study/statistic.hpp>

using lockstep::scaling::Statistic;

TEST_CASE("a statistic has the mean and the sample's standard deviation, without values that are nan") {
  auto const nan = std::numeric_limits<double>::quiet_NaN();
  std::array const values{2.0, nan, 4.0, 9.0};
  auto const all = Statistic::of(values);
  CHECK(all.mean == 5.0);
  CHECK(all.deviation == doctest::Approx(std::sqrt((9 + 1 + 16) / 2.0)));
  CHECK(all.count == 3);
  CHECK(all.times(-2).mean == -10.0);
  CHECK(all.times(-2).deviation == doctest::Approx(2 * all.deviation));
  std::array const one{3.0};
  CHECK(Statistic::of(one).deviation == 0.0);
  CHECK(Statistic::of(one).is_known());
  std::array const none{nan};
  CHECK_FALSE(Statistic::of(none).is_known());
  CHECK_FALSE(Statistic::of({}).is_known());
}
