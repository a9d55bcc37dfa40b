// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>

#include <lockstep/kernel/detail/lanes.hpp>
#include <lockstep/kernel/write.hpp>

// All of these are to be called inside with_best_instructions.
namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {

/// x = (x - mean) / sqrt(variance + epsilon), in place, in two passes: the second sums squares of differences, which
/// cannot cancel. Returns the reciprocal deviation.
template <class T>
inline T normalize_row(T* x, Index width, T epsilon) noexcept {
  auto const count = static_cast<T>(width);
  T const mean = sum(x, width) / count;
  for (Index c = 0; c < width; ++c) x[c] -= mean;
  T const reciprocal = 1 / std::sqrt(dot(x, x, width) / count + epsilon);
  for (Index c = 0; c < width; ++c) x[c] *= reciprocal;
  return reciprocal;
}

/// y = weight * x + bias.
template <class T>
inline void scale_row(T const* x, T const* weight, T const* bias, T* y, Index width) noexcept {
  for (Index c = 0; c < width; ++c) y[c] = weight[c] * x[c] + bias[c];
}

/// What the rest of backward needs of one row: the means over c of g = dy * weight and of g * normalized.
template <class T>
struct RowMeans {
  T gradient, projection;
};

/// Also adds the row to the parameters' gradients: dweight += dy * normalized, dbias += dy.
template <class T>
inline RowMeans<T> add_row(T const* dy, T const* normalized, T const* weight, T* __restrict dweight,
                           T* __restrict dbias, Index width) noexcept {
  constexpr Index lanes = LanesOf<T>::count;
  Lanes<T> gradients{}, projections{}, d, x, w, s;
  Index c = 0;
  for (; c + lanes <= width; c += lanes) {
    __builtin_memcpy(&d, dy + c, sizeof d);
    __builtin_memcpy(&x, normalized + c, sizeof x);
    __builtin_memcpy(&w, weight + c, sizeof w);
    auto const g = d * w, dx = d * x;
    gradients += g;
    projections += g * x;
    __builtin_memcpy(&s, dweight + c, sizeof s);
    s += dx;
    __builtin_memcpy(dweight + c, &s, sizeof s);
    __builtin_memcpy(&s, dbias + c, sizeof s);
    s += d;
    __builtin_memcpy(dbias + c, &s, sizeof s);
  }
  RowMeans<T> sums{0, 0};
  for (Index lane = 0; lane < lanes; ++lane) {
    sums.gradient += gradients[lane];
    sums.projection += projections[lane];
  }
  for (; c < width; ++c) {
    T const g = dy[c] * weight[c];
    sums.gradient += g;
    sums.projection += g * normalized[c];
    dweight[c] += dy[c] * normalized[c];
    dbias[c] += dy[c];
  }
  auto const count = static_cast<T>(width);
  return {sums.gradient / count, sums.projection / count};
}

/// dx = reciprocal * (g - mean of g - normalized * mean of g * normalized), or dx += that, for `count` elements of a
/// row.
template <class T>
inline void differentiate_row(T const* dy, T const* normalized, T const* weight, RowMeans<T> means, T reciprocal,
                              T* __restrict dx, Index count, Write write) noexcept {
  auto const [gradient, projection] = means;
  if (write == Write::overwrite) {
    for (Index c = 0; c < count; ++c) dx[c] = reciprocal * (dy[c] * weight[c] - gradient - normalized[c] * projection);
  } else {
    for (Index c = 0; c < count; ++c) dx[c] += reciprocal * (dy[c] * weight[c] - gradient - normalized[c] * projection);
  }
}

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
