// SPDX-License-Identifier: Apache-2.0
#pragma once
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

}  // namespace lockstep_test
