// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstddef>

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
template <std::size_t bytes, class T>
[[nodiscard, gnu::always_inline]] inline T sum_of_deviations(Vectors<bytes>, T const* x, T mean, Index width) noexcept {
  constexpr Index lanes = LanesOf<T>::count, each = LanesOf<T, bytes>::count;
  Lanes<T, bytes> sums[64 / bytes]{}, next;
  Index c = 0;
  for (; c + lanes <= width; c += lanes) {
#pragma GCC unroll 4
    for (Index p = 0; p < lanes; p += each) {
      load(next, x + c + p);
      next -= mean;
      sums[p / each] += next * next;
    }
  }
  T total = folded<T, Fold::sum>(sums);
  for (; c < width; ++c) {
    T const deviation = x[c] - mean;
    total += deviation * deviation;
  }
  return total;
}

/// In two passes: the second sums squares of differences, which cannot cancel.
template <std::size_t bytes, class T>
[[nodiscard, gnu::always_inline]] inline RowMoments<T> moments_of_row(Vectors<bytes> vectors, T const* x, Index width,
                                                                      T epsilon) noexcept {
  auto const count = static_cast<T>(width);
  T const mean = sum(vectors, x, width) / count;
  return {mean, 1 / std::sqrt(sum_of_deviations(vectors, x, mean, width) / count + epsilon)};
}

/// x = (x - mean) / sqrt(variance + epsilon), in place. Returns the reciprocal deviation.
template <std::size_t bytes, class T>
[[gnu::always_inline]] inline T normalize_row(Vectors<bytes> vectors, T* x, Index width, T epsilon) noexcept {
  auto const [mean, reciprocal] = moments_of_row(vectors, x, width, epsilon);
  for (Index c = 0; c < width; ++c) x[c] = (x[c] - mean) * reciprocal;
  return reciprocal;
}

/// y = weight * (x - mean) * reciprocal + bias; y may be x.
template <std::size_t bytes, class T>
[[gnu::always_inline]] inline void normalize_and_scale_row(Vectors<bytes>, T const* x, RowMoments<T> moments,
                                                           T const* weight, T const* bias, T* y, Index width) noexcept {
  constexpr Index each = LanesOf<T, bytes>::count;
  auto const [mean, reciprocal] = moments;
  Index c = 0;
  for (Lanes<T, bytes> n, w, b; c + each <= width; c += each) {
    load(n, x + c);
    load(w, weight + c);
    load(b, bias + c);
    n = (n - mean) * reciprocal;
    b = w * n + b;
    store(y + c, b);
  }
  for (; c < width; ++c) y[c] = weight[c] * ((x[c] - mean) * reciprocal) + bias[c];
}

/// y = weight * x + bias.
template <class T>
[[gnu::always_inline]] inline void scale_row(T const* x, T const* weight, T const* bias, T* y, Index width) noexcept {
  for (Index c = 0; c < width; ++c) y[c] = weight[c] * x[c] + bias[c];
}

/// What the rest of backward needs of one row: the means over c of g = dy * weight and of g * normalized.
template <class T>
struct RowMeans {
  T gradient, projection;
};

/// Also adds the row to the parameters' gradients: dweight += dy * normalized, dbias += dy, where normalized =
/// (x - mean) * reciprocal. A row that is normalised already has the moments 0 and 1.
template <std::size_t bytes, class T>
[[gnu::always_inline]] inline RowMeans<T> add_row(Vectors<bytes>, T const* dy, T const* row, RowMoments<T> moments,
                                                  T const* weight, T* __restrict dweight, T* __restrict dbias,
                                                  Index width) noexcept {
  auto const [mean, reciprocal] = moments;
  constexpr Index lanes = LanesOf<T>::count, each = LanesOf<T, bytes>::count;
  Lanes<T, bytes> gradients[64 / bytes]{}, projections[64 / bytes]{}, d, x, w, s;
  Index c = 0;
  for (; c + lanes <= width; c += lanes) {
#pragma GCC unroll 4
    for (Index p = 0; p < lanes; p += each) {
      load(d, dy + c + p);
      load(x, row + c + p);
      load(w, weight + c + p);
      x = (x - mean) * reciprocal;
      auto const g = d * w, dx = d * x;
      gradients[p / each] += g;
      projections[p / each] += g * x;
      load(s, dweight + c + p);
      s += dx;
      store(dweight + c + p, s);
      load(s, dbias + c + p);
      s += d;
      store(dbias + c + p, s);
    }
  }
  RowMeans<T> sums{0, 0};
#pragma GCC unroll 16
  for (Index lane = 0; lane < lanes; ++lane) {
    sums.gradient += gradients[lane / each][lane % each];
    sums.projection += projections[lane / each][lane % each];
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
template <std::size_t bytes, class T>
[[gnu::always_inline]] inline RowMeans<T> add_row(Vectors<bytes> vectors, T const* dy, T const* normalized,
                                                  T const* weight, T* __restrict dweight, T* __restrict dbias,
                                                  Index width) noexcept {
  return add_row(vectors, dy, normalized, RowMoments<T>{0, 1}, weight, dweight, dbias, width);
}

/// dx = reciprocal * (g - mean of g - normalized * mean of g * normalized), or dx += that, for `count` elements of a
/// row, where normalized = (x - mean) * scale.
template <class T>
[[gnu::always_inline]] inline void differentiate_row(T const* dy, T const* x, T mean, T scale, T const* weight,
                                                     RowMeans<T> means, T reciprocal, T* __restrict dx, Index count,
                                                     Write write) noexcept {
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
[[gnu::always_inline]] inline void differentiate_row(T const* dy, T const* x, RowMoments<T> moments, T const* weight,
                                                     RowMeans<T> means, T* __restrict dx, Index count,
                                                     Write write) noexcept {
  differentiate_row(dy, x, moments.mean, moments.reciprocal, weight, means, moments.reciprocal, dx, count, write);
}
/// dx in the place of dy.
template <class T>
[[gnu::always_inline]] inline void differentiate_row(T* __restrict d, T const* x, RowMoments<T> moments,
                                                     T const* weight, RowMeans<T> means, Index count) noexcept {
  auto const [mean, reciprocal] = moments;
  auto const [gradient, projection] = means;
  for (Index c = 0; c < count; ++c)
    d[c] = reciprocal * (d[c] * weight[c] - gradient - (x[c] - mean) * reciprocal * projection);
}
/// For x that is normalised already.
template <class T>
[[gnu::always_inline]] inline void differentiate_row(T const* dy, T const* normalized, T const* weight,
                                                     RowMeans<T> means, T reciprocal, T* __restrict dx, Index count,
                                                     Write write) noexcept {
  differentiate_row(dy, normalized, T(0), T(1), weight, means, reciprocal, dx, count, write);
}

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
