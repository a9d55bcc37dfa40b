// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <lockstep/core/index.hpp>

#include "number.hpp"

namespace lockstep_test {

/// Returns `count` numbers between -scale and scale, exact in float, so that both precisions begin with equal values.
template <class T>
[[nodiscard]] std::vector<T> values(lockstep::Index count, std::uint64_t seed, float scale = 1) {
  std::vector<T> out;
  for (lockstep::Index i = 0; i < count; ++i)
    out.push_back(static_cast<T>(scale * static_cast<float>(number(seed, i))));
  return out;
}

/// Whether x and y can be sums of equal terms, at most `terms` within [-1, 1], in different orders.
template <class T>
[[nodiscard]] bool same_sums(std::vector<T> const& x, std::vector<T> const& y, double terms) {
  auto const bound = terms * terms * static_cast<double>(std::numeric_limits<T>::epsilon());
  return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                    [=](T a, T b) { return std::abs(static_cast<double>(a) - static_cast<double>(b)) <= bound; });
}

}  // namespace lockstep_test
