// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Selects each `stride`-th row of a matrix.
template <class Space>
struct StridedRows : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct StridedRows<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes y[i] = x[i * stride + first].
  /// @shape x [rows * stride, width]   @shape y [rows, width]
  /// @determinism bitwise, for any number of threads
  template <class Scalar>
  static void forward(Stream stream, Matrix<Scalar const> x, Index stride, Index first, Matrix<Scalar> y) {
    auto const width = y.extent[1];
    stream.pool().for_ranges(y.extent[0], rows_per_task, [=](Index row, Index end) {
      for (; row < end; ++row) std::copy_n(x.data + (row * stride + first) * width, width, y.data + row * width);
    });
  }

  /// Computes dx[i * stride + first] = dy[i] and zero elsewhere, or adds it to dx.
  template <class Scalar>
  static void backward(Stream stream, Matrix<Scalar const> dy, Index stride, Index first, Matrix<Scalar> dx,
                       Write write) {
    auto const width = dy.extent[1];
    stream.pool().for_ranges(dy.extent[0], rows_per_task, [=](Index row, Index end) {
      for (; row < end; ++row) {
        auto const* const from = dy.data + row * width;
        auto* const group = dx.data + row * stride * width;
        auto* const to = group + first * width;
        if (write == Write::overwrite) {
          std::fill(group, to, Scalar{0});
          std::copy_n(from, width, to);
          std::fill(to + width, group + stride * width, Scalar{0});
        } else {
          for (Index c = 0; c < width; ++c) to[c] += from[c];
        }
      }
    });
  }

 private:
  static constexpr Index rows_per_task = 64;
};

}}}  // namespace lockstep::kernel
