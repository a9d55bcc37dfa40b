// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/detail/sum_rows.hpp>
#include <lockstep/kernel/normalization/detail/residual_row.hpp>
#include <lockstep/kernel/normalization/detail/rms_row.hpp>
#include <lockstep/kernel/normalization/residual.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Division of each row by its root mean square, then a factor for each column.
template <class Space>
struct RMSNorm : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct RMSNorm<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Rows that share one partial sum of the weight's gradient.
  static constexpr Index chunk_rows = 128;

  /// Computes sum = x + dropout(residual) and y = weight * sum / sqrt(mean(sum^2) + epsilon). Without a residual, `sum`
  /// is x and is not written. The backward pass needs `sum` and the `reciprocals` of the roots; null reciprocals are
  /// skipped.
  /// @shape x, residual, sum, y [rows, width]   @shape weight [width]   @shape reciprocals [rows]
  /// @determinism bitwise, for any number of threads
  /// @throws ShapeError if the shapes disagree; reports both
  /// @source Zhang, Sennrich: Root Mean Square Layer Normalization (2019)
  template <class Scalar>
  static void forward(Stream stream, Matrix<Scalar const> x, Residual<Scalar, HostSpace> residual,
                      Vector<Scalar const> weight, Scalar epsilon, Matrix<Scalar> sum, Vector<Scalar> reciprocals,
                      Matrix<Scalar> y);

  /// Returns the number of elements that `backward` needs for its partial sums.
  [[nodiscard]] static constexpr Index partial_elements(Index rows, Index width) noexcept {
    return std::max<Index>(1, chunks(rows)) * width;
  }

  /// Computes the gradients. Let n = sum * reciprocal and g = dy * weight. Then dsum = reciprocal * (g - n * mean(g *
  /// n)) plus `other_gradient`, a further gradient of the sum that may be null. dx = dsum, dresidual = dropout(dsum),
  /// and dweight = sum over rows of dy * n. Overwrites or adds to each. Skips a null dx or dresidual.
  /// @shape dy, sum, `other_gradient`, dx, dresidual [rows, width]   @shape reciprocals [rows]   @shape weight, dweight
  /// [width]
  /// @shape partial [partial_elements(rows, width)], overwritten
  /// @determinism bitwise, for any number of threads
  template <class Scalar>
  static void backward(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> sum,
                       Vector<Scalar const> reciprocals, Matrix<Scalar const> other_gradient,
                       RowDropout<HostSpace> dropout, Vector<Scalar const> weight, Matrix<Scalar> dx, Write dx_write,
                       Matrix<Scalar> dresidual, Write dresidual_write, Vector<Scalar> dweight, Write dweight_write,
                       Scalar* partial);

 private:
  static constexpr Index block = 256;  // elements whose gradient is kept until it is added to dx and dresidual

  [[nodiscard]] static constexpr Index chunks(Index rows) noexcept { return (rows + chunk_rows - 1) / chunk_rows; }
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/normalization/rms_norm.ipp>
#endif
