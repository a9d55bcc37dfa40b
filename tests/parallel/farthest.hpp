// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <doctest/doctest.h>

namespace lockstep_test {

/// Returns the largest difference of two vectors of equal length; NaN if a difference is NaN.
template <class T>
double farthest(std::vector<T> const& a, std::vector<T> const& b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    auto const off = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (std::isnan(off)) return off;
    most = std::max(most, off);
  }
  return most;
}

}  // namespace lockstep_test
