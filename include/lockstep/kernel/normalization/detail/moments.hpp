// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/index.hpp>
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

/// Corrects the mean of each column, and the sum of its squared differences from it. Both are from `count` rows, with a
/// mean that a first sum gave. `rests` are the sums of the differences from that mean: its rounding error times count.
/// Returns false if a column's squares lost digits to that error. They then need a second pass with the corrected mean.
template <class Scalar>
[[nodiscard, gnu::always_inline]] inline bool correct_moments(Scalar* __restrict means, Scalar* __restrict squares,
                                                              Scalar const* __restrict rests, Scalar count,
                                                              Index width) noexcept {
  Index imprecise = 0;
  for (Index c = 0; c < width; ++c) {
    Scalar const error = rests[c] * rests[c] / count, rest = squares[c] - error;
    imprecise += error > squares[c] / 256;
    squares[c] = rest < 0 ? Scalar{0} : rest;  // NaN stays NaN
    means[c] += rests[c] / count;
  }
  return imprecise == 0;
}

}}}  // namespace lockstep::kernel::detail
