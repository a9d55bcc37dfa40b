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

/// y = weight * (x - mean) * reciprocal + bias; y may be x.
template <class T>
inline void normalize_and_scale_row(T const* x, RowMoments<T> moments, T const* weight, T const* bias, T* y,
                                    Index width) noexcept {
  constexpr Index lanes = LanesOf<T>::count;
  auto const [mean, reciprocal] = moments;
  Index c = 0;
  for (Lanes<T> n, w, b; c + lanes <= width; c += lanes) {
    __builtin_memcpy(&n, x + c, sizeof n);
    __builtin_memcpy(&w, weight + c, sizeof w);
    __builtin_memcpy(&b, bias + c, sizeof b);
    n = (n - mean) * reciprocal;
    b = w * n + b;
    __builtin_memcpy(y + c, &b, sizeof b);
  }
  for (; c < width; ++c) y[c] = weight[c] * ((x[c] - mean) * reciprocal) + bias[c];
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

/// Also adds the row to the parameters' gradients: dweight += dy * normalized, dbias += dy, where normalized =
/// (x - mean) * reciprocal. A row that is normalised already has the moments 0 and 1.
template <class T>
inline RowMeans<T> add_row(T const* dy, T const* row, RowMoments<T> moments, T const* weight, T* __restrict dweight,
                           T* __restrict dbias, Index width) noexcept {
  auto const [mean, reciprocal] = moments;
  constexpr Index lanes = LanesOf<T>::count;
  Lanes<T> gradients{}, projections{}, d, x, w, s;
  Index c = 0;
  for (; c + lanes <= width; c += lanes) {
    __builtin_memcpy(&d, dy + c, sizeof d);
    __builtin_memcpy(&x, row + c, sizeof x);
    __builtin_memcpy(&w, weight + c, sizeof w);
    x = (x - mean) * reciprocal;
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
    T const g = dy[c] * weight[c], normalized = (row[c] - mean) * reciprocal;
    sums.gradient += g;
    sums.projection += g * normalized;
    dweight[c] += dy[c] * normalized;
    dbias[c] += dy[c];
  }
  auto const count = static_cast<T>(width);
  return {sums.gradient / count, sums.projection / count};
}

/// For x that is normalised already.
template <class T>
inline RowMeans<T> add_row(T const* dy, T const* normalized, T const* weight, T* __restrict dweight,
                           T* __restrict dbias, Index width) noexcept {
  return add_row(dy, normalized, RowMoments<T>{0, 1}, weight, dweight, dbias, width);
}

/// dx = reciprocal * (g - mean of g - normalized * mean of g * normalized), or dx += that, for `count` elements of a
/// row, where normalized = (x - mean) * scale.
template <class T>
inline void differentiate_row(T const* dy, T const* x, T mean, T scale, T const* weight, RowMeans<T> means,
                              T reciprocal, T* __restrict dx, Index count, Write write) noexcept {
  auto const [gradient, projection] = means;
  if (write == Write::overwrite) {
    for (Index c = 0; c < count; ++c)
      dx[c] = reciprocal * (dy[c] * weight[c] - gradient - (x[c] - mean) * scale * projection);
  } else {
    for (Index c = 0; c < count; ++c)
      dx[c] += reciprocal * (dy[c] * weight[c] - gradient - (x[c] - mean) * scale * projection);
  }
}
template <class T>
inline void differentiate_row(T const* dy, T const* x, RowMoments<T> moments, T const* weight, RowMeans<T> means,
                              T* __restrict dx, Index count, Write write) noexcept {
  differentiate_row(dy, x, moments.mean, moments.reciprocal, weight, means, moments.reciprocal, dx, count, write);
}
/// dx in the place of dy.
template <class T>
inline void differentiate_row(T* __restrict d, T const* x, RowMoments<T> moments, T const* weight, RowMeans<T> means,
                              Index count) noexcept {
  auto const [mean, reciprocal] = moments;
  auto const [gradient, projection] = means;
  for (Index c = 0; c < count; ++c)
    d[c] = reciprocal * (d[c] * weight[c] - gradient - (x[c] - mean) * reciprocal * projection);
}
/// For x that is normalised already.
template <class T>
inline void differentiate_row(T const* dy, T const* normalized, T const* weight, RowMeans<T> means, T reciprocal,
                              T* __restrict dx, Index count, Write write) noexcept {
  differentiate_row(dy, normalized, T(0), T(1), weight, means, reciprocal, dx, count, write);
}

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
