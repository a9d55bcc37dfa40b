// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Number of elements, their mean, and the sum of their squared differences from the mean.
struct Moments {
  double count = 0, mean = 0, squares = 0;

  constexpr void merge(Moments const& other) noexcept {
    if (other.count == 0) return;
    if (count == 0) {
      *this = other;
      return;
    }
    auto const off = other.mean - mean, all = count + other.count;
    mean += off * other.count / all;
    squares += other.squares + off * off * count * other.count / all;
    count = all;
  }
};

}}}  // namespace lockstep::kernel::detail
