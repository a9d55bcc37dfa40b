// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <lockstep/core/index.hpp>
#include <lockstep/kernel/copy/copy.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/gemm/gemm.hpp>
#include <lockstep/kernel/reduction/sum_of_squares.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Newton-Schulz iteration that brings the singular values of a matrix X near 1. Begins with X / max(|X|, epsilon),
/// where |X| is the Frobenius norm. Then repeats, for X with at most as many rows as columns:
///   A = X X^T        X = a X + (b A + c A^2) X
/// For a taller X, iterates its transpose.
struct NewtonSchulz {
  std::array<double, 3> coefficients;  ///< a, b, c
  int iterations;                      ///< repetitions
  double epsilon;                      ///< least divisor

  /// Returns the elements of work memory for a matrix: its size, and two squares of its shorter side.
  [[nodiscard]] static constexpr Index work_elements(Index rows, Index columns) noexcept {
    auto const side = std::min(rows, columns);
    return rows * columns + 2 * side * side;
  }
};

/// Orthogonalizes a matrix approximately.
template <class Space>
struct Orthogonalize : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct Orthogonalize<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Runs the iteration on x by the stream's matrix products. Overwrites x and `work`, of NewtonSchulz::work_elements.
  /// Computes A and A^2, which are symmetric, in strips up to the diagonal. Allocates nothing.
  /// @returns the result, [rows, columns], in x or in `work`
  /// @determinism bitwise, for any number of threads
  template <class Scalar>
  [[nodiscard]] static Scalar const* run(Stream stream, NewtonSchulz const& by, Matrix<Scalar> x, Scalar* work) {
    auto const [rows, columns] = x.extent;
    bool const tall = rows > columns;
    auto const side = std::min(rows, columns), length = std::max(rows, columns);
    Scalar *now = x.data, *next = work, *const gram = work + rows * columns, *const factor = gram + side * side;
    auto const norm = std::sqrt(SumOfSquares<HostSpace>::run<Scalar>(stream, {x.data, {rows * columns}}));
    auto scale = 1 / std::max(norm, by.epsilon);  // the first products multiply by it
    auto const [a, b, c] = by.coefficients;
    for (int i = 0; i < by.iterations; ++i, scale = 1) {
      detail::Strided<Scalar const> const wide{now, tall ? 1 : columns, tall ? columns : 1};
      multiply_symmetric<Scalar>(stream, scale * scale, wide, {now, wide.column, wide.row}, side, length, 0, gram);
      Copy<HostSpace>::run<Scalar>(stream, gram, factor, side * side);
      multiply_symmetric<Scalar>(stream, c, {gram, side, 1}, {gram, side, 1}, side, side, b, factor);
      for (Index j = 0; j < side; ++j) factor[j * side + j] += static_cast<Scalar>(a);
      Matrix<Scalar const> const square{factor, {side, side}}, matrix{now, {rows, columns}};
      Gemm<HostSpace>::multiply<Scalar>(stream, static_cast<Scalar>(scale), tall ? matrix : square, Transpose::no,
                                        tall ? square : matrix, Transpose::no, 0, {next, {rows, columns}});
      std::swap(now, next);
    }
    return now;
  }

 private:
  static constexpr Index strip = 96;  ///< rows of a symmetric product that are computed together

  /// Computes C = alpha * A B + beta * C, where A B and C are symmetric.
  /// @shape A [side, depth]   @shape B [depth, side]   @shape C [side, side]
  template <class Scalar>
  static void multiply_symmetric(Stream stream, double alpha, detail::Strided<Scalar const> a,
                                 detail::Strided<Scalar const> b, Index side, Index depth, double beta, Scalar* c) {
    for (Index row = 0; row < side; row += strip) {
      auto const rows = std::min(strip, side - row);
      Gemm<HostSpace>::multiply<Scalar>(stream, {.m = rows,
                                                 .n = row + rows,
                                                 .k = depth,
                                                 .alpha = static_cast<Scalar>(alpha),
                                                 .a = a.at(row, 0),
                                                 .b = b,
                                                 .beta = static_cast<Scalar>(beta),
                                                 .c = c + row * side,
                                                 .c_row = side,
                                                 .bias = nullptr,
                                                 .rounded = detail::RoundedProducts::of(stream)});
    }
    constexpr Index block = 16;  // of columns that stay in cache while rows are read
    for (Index first = 0; first < side; first += block)
      for (Index i = first + 1; i < side; ++i)
        for (Index j = first; j < std::min(i, first + block); ++j) c[j * side + i] = c[i * side + j];
  }
};

}}}  // namespace lockstep::kernel
