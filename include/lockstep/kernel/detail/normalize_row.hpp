// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>

#include <lockstep/kernel/detail/lanes.hpp>
#include <lockstep/kernel/write.hpp>

// All of these are to be called inside with_best_instructions.
namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {

/// What normalises a row: its mean and the reciprocal of its deviation.
template <class T>
struct RowMoments {
  T mean, reciprocal;
};

/// Sum over c of (x[c] - mean)^2, in the order of `dot`.
template <class T>
[[nodiscard, gnu::always_inline]] inline T sum_of_deviations(T const* x, T mean, Index width) noexcept {
  constexpr Index lanes = LanesOf<T>::count;
  Lanes<T> sums{}, next;
  Index c = 0;
  for (; c + lanes <= width; c += lanes) {
    __builtin_memcpy(&next, x + c, sizeof next);
    next -= mean;
    sums += next * next;
  }
  T total = sum_of_lanes<T>(sums);
  for (; c < width; ++c) {
    T const deviation = x[c] - mean;
    total += deviation * deviation;
  }
  return total;
}

/// In two passes: the second sums squares of differences, which cannot cancel.
template <class T>
[[nodiscard]] inline RowMoments<T> moments_of_row(T const* x, Index width, T epsilon) noexcept {
  auto const count = static_cast<T>(width);
  T const mean = sum(x, width) / count;
  return {mean, 1 / std::sqrt(sum_of_deviations(x, mean, width) / count + epsilon)};
}

/// x = (x - mean) / sqrt(variance + epsilon), in place. Returns the reciprocal deviation.
template <class T>
inline T normalize_row(T* x, Index width, T epsilon) noexcept {
  auto const [mean, reciprocal] = moments_of_row(x, width, epsilon);
  for (Index c = 0; c < width; ++c) x[c] = (x[c] - mean) * reciprocal;
  return reciprocal;
}

/// normalized = (x - mean) * reciprocal and y = weight * normalized + bias, in one pass. A null `normalized` is left
/// out; either may be x.
template <class T>
inline void normalize_and_scale_row(T const* x, RowMoments<T> moments, T const* weight, T const* bias, T* normalized,
                                    T* y, Index width) noexcept {
  constexpr Index lanes = LanesOf<T>::count;
  auto const [mean, reciprocal] = moments;
  Index c = 0;
  for (Lanes<T> n, w, b; c + lanes <= width; c += lanes) {
    __builtin_memcpy(&n, x + c, sizeof n);
    __builtin_memcpy(&w, weight + c, sizeof w);
    __builtin_memcpy(&b, bias + c, sizeof b);
    n = (n - mean) * reciprocal;
    b = w * n + b;
    if (normalized) __builtin_memcpy(normalized + c, &n, sizeof n);
    __builtin_memcpy(y + c, &b, sizeof b);
  }
  for (; c < width; ++c) {
    T const n = (x[c] - mean) * reciprocal;
    if (normalized) normalized[c] = n;
    y[c] = weight[c] * n + bias[c];
  }
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
