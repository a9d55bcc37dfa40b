// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <limits>
#include <vector>

#include <lockstep/kernel/gemm/gemm.hpp>

#include "kernel/values.hpp"
#include "kernel/view.hpp"

/// Products of all kinds and their definition in double.
namespace gemm_cases {
using lockstep::Index;
using lockstep::kernel::Transpose;

struct Shape {
  Index m, n, k;
};
/// Empty, one, near every tile and block size, and the text classifier's own.
inline std::vector<Shape> const shapes{{0, 3, 4},       {3, 0, 4},       {3, 4, 0},     {1, 1, 1},      {1, 33, 7},
                                       {7, 5, 3},       {8, 32, 31},     {9, 33, 32},   {31, 31, 33},   {48, 128, 256},
                                       {49, 129, 257},  {257, 260, 40},  {32, 4, 128},  {128, 128, 32}, {130, 64, 513},
                                       {300, 384, 128}, {512, 130, 270}, {513, 130, 20}};

template <class T>
struct Case {
  Shape shape;
  T alpha = 1, beta = 0;
  Transpose a_transpose = Transpose::no, b_transpose = Transpose::no;
  std::vector<T> a = lockstep_test::values<T>(shape.m * shape.k, 1);
  std::vector<T> b = lockstep_test::values<T>(shape.k * shape.n, 2);
  std::vector<T> c = lockstep_test::values<T>(shape.m * shape.n, 3);

  [[nodiscard]] auto a_view() const {
    bool const row_major = a_transpose == Transpose::no;
    return lockstep_test::view(a, row_major ? shape.m : shape.k, row_major ? shape.k : shape.m);
  }
  [[nodiscard]] auto b_view() const {
    bool const row_major = b_transpose == Transpose::no;
    return lockstep_test::view(b, row_major ? shape.k : shape.n, row_major ? shape.n : shape.k);
  }
  [[nodiscard]] T a_at(Index i, Index p) const {
    return a[static_cast<std::size_t>(a_transpose == Transpose::no ? i * shape.k + p : p * shape.m + i)];
  }
  [[nodiscard]] T b_at(Index p, Index j) const {
    return b[static_cast<std::size_t>(b_transpose == Transpose::no ? p * shape.n + j : j * shape.k + p)];
  }

  /// The largest error of `result` in units of its bound. Every one of the k products and additions, the scaling by
  /// alpha and the addition of beta * c and of partial sums rounds once, by at most half an epsilon of a sum that never
  /// exceeds the sum of the terms' magnitudes: error <= (k + 4 + k / 256) * epsilon / 2 * sum |terms|.
  [[nodiscard]] double worst_error(std::vector<T> const& result) const {
    double worst = 0;
    for (Index i = 0; i < shape.m; ++i) {
      for (Index j = 0; j < shape.n; ++j) {
        auto const at = static_cast<std::size_t>(i * shape.n + j);
        double sum = beta != 0 ? static_cast<double>(beta) * static_cast<double>(c[at]) : 0, magnitude = std::abs(sum);
        for (Index p = 0; p < shape.k; ++p) {
          double const term =
              static_cast<double>(alpha) * static_cast<double>(a_at(i, p)) * static_cast<double>(b_at(p, j));
          sum += term;
          magnitude += std::abs(term);
        }
        // In double the oracle itself rounds as often as the tested product.
        auto const roundings = static_cast<double>((shape.k + 4 + shape.k / 256) * (sizeof(T) == 8 ? 2 : 1));
        double const bound = roundings * static_cast<double>(std::numeric_limits<T>::epsilon()) / 2 * magnitude;
        double const error = std::abs(static_cast<double>(result[at]) - sum);
        if (!(error <= bound)) worst = std::max(worst, bound > 0 ? error / bound : 2.0);
        if (std::isnan(error)) worst = std::numeric_limits<double>::infinity();
      }
    }
    return worst;
  }
};

/// All four transpositions, with and without C's old values.
template <class T>
[[nodiscard]] std::vector<Case<T>> kinds(Shape shape) {
  std::vector<Case<T>> out;
  for (auto a : {Transpose::no, Transpose::yes})
    for (auto b : {Transpose::no, Transpose::yes})
      for (T beta : {T(0), T(1), T(-0.5)})
        out.push_back(
            {.shape = shape, .alpha = beta == 1 ? T(0.25) : T(1), .beta = beta, .a_transpose = a, .b_transpose = b});
  return out;
}

}  // namespace gemm_cases
