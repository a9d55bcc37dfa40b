// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/core/philox.hpp>

namespace lockstep_test {

/// `count` numbers between -scale and scale, exactly representable as float, so that both precisions start alike.
template <class T>
[[nodiscard]] std::vector<T> values(lockstep::Index count, std::uint64_t seed, float scale = 1) {
  lockstep::Philox const random(seed);
  std::vector<T> out;
  for (lockstep::Index i = 0; i < count; ++i)
    out.push_back(static_cast<T>(scale * (2 * lockstep::uniform(random(0, static_cast<std::uint64_t>(i))[0]) - 1)));
  return out;
}

/// Whether x and y may be the same sums of up to `terms` terms within [-1, 1], in different orders.
template <class T>
[[nodiscard]] bool same_sums(std::vector<T> const& x, std::vector<T> const& y, double terms) {
  auto const bound = terms * terms * static_cast<double>(std::numeric_limits<T>::epsilon());
  return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                    [=](T a, T b) { return std::abs(static_cast<double>(a) - static_cast<double>(b)) <= bound; });
}

}  // namespace lockstep_test
