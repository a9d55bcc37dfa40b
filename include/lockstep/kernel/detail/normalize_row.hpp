// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstddef>

#include <lockstep/kernel/detail/lanes.hpp>
#include <lockstep/kernel/write.hpp>

// Call all of these inside with_best_instructions.
namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Moments that normalize a row: its mean and the reciprocal of its deviation.
template <class Scalar>
struct RowMoments {
  Scalar mean, reciprocal;
};

/// Computes the moments of consecutive rows in two passes. The second sums squares of differences, which cannot cancel.
/// It also prefetches the rows that follow, since its own input is in cache. Prefetches past the last row are harmless.
template <std::size_t rows, std::size_t bytes, class Scalar>
[[gnu::always_inline]] inline void moments_of_rows(Vectors<bytes> vectors, Scalar const* x, Index width, Scalar epsilon,
                                                   RowMoments<Scalar> (&moments)[rows]) noexcept {
  auto const count = static_cast<Scalar>(width);
  Scalar sums[rows], means[rows];
  sum_terms(
      vectors, sums, width, [=](auto& next, std::size_t row, Index c) __attribute__((always_inline)) {
        load(next, x + static_cast<Index>(row) * width + c);
      });
#pragma GCC unroll 4
  for (std::size_t row = 0; row < rows; ++row) means[row] = sums[row] / count;
  sum_terms(
      vectors, sums, width, [ =, &means ](auto& next, std::size_t row, Index c) __attribute__((always_inline)) {
        load(next, x + static_cast<Index>(row) * width + c);
        __builtin_prefetch(x + static_cast<Index>(rows + row) * width + c);
        next -= means[row];
        next = next * next;
      });
#pragma GCC unroll 4
  for (std::size_t row = 0; row < rows; ++row) moments[row] = {means[row], 1 / std::sqrt(sums[row] / count + epsilon)};
}

/// Computes x = (x - mean) / sqrt(variance + epsilon), in place. Returns the reciprocal of the deviation.
template <std::size_t bytes, class Scalar>
[[gnu::always_inline]] inline Scalar normalize_row(Vectors<bytes> vectors, Scalar* x, Index width,
                                                   Scalar epsilon) noexcept {
  RowMoments<Scalar> moments[1];
  moments_of_rows(vectors, x, width, epsilon, moments);
  auto const [mean, reciprocal] = moments[0];
  for (Index c = 0; c < width; ++c) x[c] = (x[c] - mean) * reciprocal;
  return reciprocal;
}

/// Computes y = weight * (x - mean) * reciprocal + bias for consecutive rows; y may be x. Also prefetches the following
/// rows of y, because stores need their cache lines, too.
template <std::size_t rows, std::size_t bytes, class Scalar>
[[gnu::always_inline]] inline void normalize_and_scale_rows(Vectors<bytes>, Scalar const* x,
                                                            RowMoments<Scalar> (&moments)[rows], Scalar const* weight,
                                                            Scalar const* bias, Scalar* y, Index width) noexcept {
  constexpr Index each = LanesOf<Scalar, bytes>::count;
  Index c = 0;
  for (Lanes<Scalar, bytes> n, w, b; c + each <= width; c += each) {
    load(w, weight + c);
    load(b, bias + c);
#pragma GCC unroll 4
    for (std::size_t row = 0; row < rows; ++row) {
      auto const at = static_cast<Index>(row) * width + c;
      load(n, x + at);
      __builtin_prefetch(y + static_cast<Index>(rows) * width + at, 1);
      n = w * ((n - moments[row].mean) * moments[row].reciprocal) + b;
      store(y + at, n);
    }
  }
  for (; c < width; ++c) {
    for (std::size_t row = 0; row < rows; ++row) {
      auto const at = static_cast<Index>(row) * width + c;
      y[at] = weight[c] * ((x[at] - moments[row].mean) * moments[row].reciprocal) + bias[c];
    }
  }
}

/// Computes y = weight * x + bias.
template <class Scalar>
[[gnu::always_inline]] inline void scale_row(Scalar const* x, Scalar const* weight, Scalar const* bias, Scalar* y,
                                             Index width) noexcept {
  for (Index c = 0; c < width; ++c) y[c] = weight[c] * x[c] + bias[c];
}

/// A row's means for the rest of the backward pass: over c, of g = dy * weight and of g * normalized.
template <class Scalar>
struct RowMeans {
  Scalar gradient, projection;
};

/// Returns the row's means, and adds the row to the parameters' gradients. dweight += dy * normalized and dbias += dy,
/// with normalized = (x - mean) * reciprocal. A row that is already normalized has the moments 0 and 1.
template <std::size_t bytes, class Scalar>
[[gnu::always_inline]] inline RowMeans<Scalar> add_row(Vectors<bytes>, Scalar const* dy, Scalar const* row,
                                                       RowMoments<Scalar> moments, Scalar const* weight,
                                                       Scalar* __restrict dweight, Scalar* __restrict dbias,
                                                       Index width) noexcept {
  auto const [mean, reciprocal] = moments;
  constexpr Index lanes = LanesOf<Scalar>::count, each = LanesOf<Scalar, bytes>::count;
  Lanes<Scalar, bytes> gradients[64 / bytes]{}, projections[64 / bytes]{}, d, x, w, s;
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
  RowMeans<Scalar> sums{reduced<Scalar, Reduction::sum>(gradients), reduced<Scalar, Reduction::sum>(projections)};
  for (; c < width; ++c) {
    Scalar const g = dy[c] * weight[c], normalized = (row[c] - mean) * reciprocal;
    sums.gradient += g;
    sums.projection += g * normalized;
    dweight[c] += dy[c] * normalized;
    dbias[c] += dy[c];
  }
  auto const count = static_cast<Scalar>(width);
  return {sums.gradient / count, sums.projection / count};
}

/// Version for an x that is already normalized.
template <std::size_t bytes, class Scalar>
[[gnu::always_inline]] inline RowMeans<Scalar> add_row(Vectors<bytes> vectors, Scalar const* dy,
                                                       Scalar const* normalized, Scalar const* weight,
                                                       Scalar* __restrict dweight, Scalar* __restrict dbias,
                                                       Index width) noexcept {
  return add_row(vectors, dy, normalized, RowMoments<Scalar>{0, 1}, weight, dweight, dbias, width);
}

/// Computes dx = reciprocal * (g - mean of g - normalized * mean of g * normalized), or adds it to dx. Processes
/// `count` elements of a row; normalized = (x - mean) * scale.
template <class Scalar>
[[gnu::always_inline]] inline void differentiate_row(Scalar const* dy, Scalar const* x, Scalar mean, Scalar scale,
                                                     Scalar const* weight, RowMeans<Scalar> means, Scalar reciprocal,
                                                     Scalar* __restrict dx, Index count, Write write) noexcept {
  auto const [gradient, projection] = means;
  if (write == Write::overwrite) {
    for (Index c = 0; c < count; ++c)
      dx[c] = reciprocal * (dy[c] * weight[c] - gradient - (x[c] - mean) * scale * projection);
  } else {
    for (Index c = 0; c < count; ++c)
      dx[c] += reciprocal * (dy[c] * weight[c] - gradient - (x[c] - mean) * scale * projection);
  }
}
template <class Scalar>
[[gnu::always_inline]] inline void differentiate_row(Scalar const* dy, Scalar const* x, RowMoments<Scalar> moments,
                                                     Scalar const* weight, RowMeans<Scalar> means,
                                                     Scalar* __restrict dx, Index count, Write write) noexcept {
  differentiate_row(dy, x, moments.mean, moments.reciprocal, weight, means, moments.reciprocal, dx, count, write);
}
/// Version that overwrites dy with dx.
template <class Scalar>
[[gnu::always_inline]] inline void differentiate_row(Scalar* __restrict d, Scalar const* x, RowMoments<Scalar> moments,
                                                     Scalar const* weight, RowMeans<Scalar> means,
                                                     Index count) noexcept {
  auto const [mean, reciprocal] = moments;
  auto const [gradient, projection] = means;
  for (Index c = 0; c < count; ++c)
    d[c] = reciprocal * (d[c] * weight[c] - gradient - (x[c] - mean) * reciprocal * projection);
}
/// Version for an x that is already normalized.
template <class Scalar>
[[gnu::always_inline]] inline void differentiate_row(Scalar const* dy, Scalar const* normalized, Scalar const* weight,
                                                     RowMeans<Scalar> means, Scalar reciprocal, Scalar* __restrict dx,
                                                     Index count, Write write) noexcept {
  differentiate_row(dy, normalized, Scalar(0), Scalar(1), weight, means, reciprocal, dx, count, write);
}

}}}  // namespace lockstep::kernel::detail
