// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/square_roots.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

TEST_CASE_TEMPLATE("every element is the correctly rounded root, and nothing beyond the end is touched", T, float,
                   double) {
  for (lockstep::Index count : {0, 1, 3, 4, 5, 31, 32, 33}) {
    std::vector<T> x(static_cast<std::size_t>(count) + 1);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(0.1 + 1.7 * static_cast<double>(i * i));
    auto const before = x;
    lockstep::kernel::square_roots(x.data(), count);
    for (std::size_t i = 0; i + 1 < x.size(); ++i) CHECK(x[i] == std::sqrt(before[i]));
    CHECK(x.back() == before.back());
  }
  T special[] = {0, std::numeric_limits<T>::infinity(), std::numeric_limits<T>::denorm_min(), -1};
  lockstep::kernel::square_roots(special, 4);
  CHECK(special[0] == 0);
  CHECK(std::isinf(special[1]));
  CHECK(special[2] == std::sqrt(std::numeric_limits<T>::denorm_min()));
  CHECK(std::isnan(special[3]));
}
