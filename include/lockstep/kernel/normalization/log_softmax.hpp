// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/normalization/detail/softmax_rows.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Logarithm of the softmax of each row.
template <class Space>
struct LogSoftmax : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct LogSoftmax<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes y[r, c] = x[r, c] - log(sum over c of exp(x[r, c])). Subtracts the row's largest value first, so nothing
  /// overflows.
  /// @shape x, y [rows, width]
  /// @determinism bitwise, for any number of threads
  template <class Scalar>
  static void forward(Stream stream, Matrix<Scalar const> x, Matrix<Scalar> y) {
    detail::softmax_rows<detail::LogSoftmaxRule>(stream, x, y);
  }

  /// Computes dx[r] = dy[r] - exp(y[r]) * sum(dy[r]), or adds it to dx.
  /// @shape dy, y, dx [rows, width]
  template <class Scalar>
  static void backward(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> y, Matrix<Scalar> dx, Write write) {
    detail::differentiate_softmax_rows<detail::LogSoftmaxRule>(stream, dy, y, dx, write);
  }
};

}}}  // namespace lockstep::kernel
