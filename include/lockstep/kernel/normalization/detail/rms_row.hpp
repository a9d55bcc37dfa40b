// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstddef>

#include <lockstep/core/index.hpp>
#include <lockstep/kernel/detail/lanes.hpp>
#include <lockstep/kernel/write.hpp>

// Call all of these inside with_best_instructions.
namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Computes y = weight * x / root, with root = sqrt(mean of x^2 + epsilon). Returns 1 / root.
template <std::size_t bytes, class Scalar>
[[gnu::always_inline]] inline Scalar rms_row(Vectors<bytes> vectors, Scalar const* x, Scalar const* weight,
                                             Scalar epsilon, Scalar* y, Index width) noexcept {
  Scalar const reciprocal = 1 / std::sqrt(dot(vectors, x, x, width) / static_cast<Scalar>(width) + epsilon);
  for (Index c = 0; c < width; ++c) y[c] = weight[c] * (x[c] * reciprocal);
  return reciprocal;
}

/// Computes dweight += dy * n for n = x * reciprocal. Returns the mean over c of dy * weight * n.
template <std::size_t bytes, class Scalar>
[[gnu::always_inline]] inline Scalar add_rms_row(Vectors<bytes>, Scalar const* dy, Scalar const* x,
                                                 Scalar const* weight, Scalar reciprocal, Scalar* __restrict dweight,
                                                 Index width) noexcept {
  constexpr Index lanes = LanesOf<Scalar>::count, each = LanesOf<Scalar, bytes>::count;
  Lanes<Scalar, bytes> projections[64 / bytes]{}, d, s, w, sum;
  Index c = 0;
  for (; c + lanes <= width; c += lanes) {
#pragma GCC unroll 4
    for (Index p = 0; p < lanes; p += each) {
      load(d, dy + c + p);
      load(s, x + c + p);
      load(w, weight + c + p);
      auto const dn = d * (s * reciprocal);
      projections[p / each] += dn * w;
      load(sum, dweight + c + p);
      sum += dn;
      store(dweight + c + p, sum);
    }
  }
  Scalar projection = reduced<Scalar, Reduction::sum>(projections);
  for (; c < width; ++c) {
    Scalar const dn = dy[c] * (x[c] * reciprocal);
    projection += dn * weight[c];
    dweight[c] += dn;
  }
  return projection / static_cast<Scalar>(width);
}

/// Computes `to = reciprocal * (dy * weight - n * projection) + other_gradient` for `count` elements of a row.
/// `other_gradient` is a further gradient of x, or null.
template <class Scalar>
[[gnu::always_inline]] inline void differentiate_rms_row(Scalar const* dy, Scalar const* x, Scalar const* weight,
                                                         Scalar reciprocal, Scalar projection,
                                                         Scalar const* other_gradient, Scalar* __restrict to,
                                                         Index count) noexcept {
  Scalar const slope = reciprocal * projection;
  for (Index c = 0; c < count; ++c) to[c] = reciprocal * (dy[c] * weight[c] - x[c] * slope);
  if (other_gradient)
    for (Index c = 0; c < count; ++c) to[c] += other_gradient[c];
}

/// Computes to = x, or adds x to it.
template <class Scalar>
[[gnu::always_inline]] inline void write_row(Scalar const* __restrict x, Scalar* to, Index count,
                                             Write write) noexcept {
  if (write == Write::overwrite) {
    for (Index c = 0; c < count; ++c) to[c] = x[c];
  } else {
    for (Index c = 0; c < count; ++c) to[c] += x[c];
  }
}

}}}  // namespace lockstep::kernel::detail
