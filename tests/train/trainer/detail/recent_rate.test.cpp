// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/trainer/detail/recent_rate.hpp>

#include <doctest/doctest.h>

using lockstep::train::detail::RecentRate;

TEST_CASE("a slow start is forgotten after about a second of training") {
  RecentRate rate;
  CHECK(rate.value() == 0);
  rate.add(10, 2);
  CHECK(rate.value() == 5);
  for (int i = 0; i < 50; ++i) rate.add(10, 0.01);
  CHECK(rate.value() == doctest::Approx(510 / 2.5));
  for (int i = 0; i < 100; ++i) rate.add(10, 0.01);
  CHECK(rate.value() == doctest::Approx(1000));
}

TEST_CASE("long steps count one by one, the last ten of them") {
  RecentRate rate;
  for (int i = 0; i < 30; ++i) rate.add(i < 20 ? 1 : 8, 2);
  CHECK(rate.value() == doctest::Approx(4));
}
