// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// A range of adjacent columns of a matrix.
template <class Space>
struct Channels : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct Channels<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes y[r, first + c] = x[r, c]; other columns stay unchanged.
  /// @shape x [rows, width]   @shape y [rows, at least first + width]
  /// @determinism bitwise, for any number of threads
  template <class Scalar>
  static void put(Stream stream, Matrix<Scalar const> x, Index first, Matrix<Scalar> y) {
    auto const width = x.extent[1], all = y.extent[1];
    stream.pool().for_ranges(x.extent[0], rows_per_task, [=](Index row, Index end) {
      for (; row < end; ++row) std::copy_n(x.data + row * width, width, y.data + row * all + first);
    });
  }

  /// Computes x[r, c] = y[r, first + c], or adds it to x: also the gradient of `put`.
  template <class Scalar>
  static void take(Stream stream, Matrix<Scalar const> y, Index first, Matrix<Scalar> x, Write write) {
    auto const width = x.extent[1], all = y.extent[1];
    stream.pool().for_ranges(x.extent[0], rows_per_task, [=](Index row, Index end) {
      for (; row < end; ++row) {
        auto const* const from = y.data + row * all + first;
        auto* const to = x.data + row * width;
        if (write == Write::overwrite) {
          std::copy_n(from, width, to);
        } else {
          for (Index c = 0; c < width; ++c) to[c] += from[c];
        }
      }
    });
  }

  /// Computes dy[r, first + c] = dx[r, c] and zero in other columns, or adds it to dy: the gradient of `take`.
  template <class Scalar>
  static void take_backward(Stream stream, Matrix<Scalar const> dx, Index first, Matrix<Scalar> dy, Write write) {
    auto const width = dx.extent[1], all = dy.extent[1];
    stream.pool().for_ranges(dx.extent[0], rows_per_task, [=](Index row, Index end) {
      for (; row < end; ++row) {
        auto const* const from = dx.data + row * width;
        auto* const to = dy.data + row * all;
        if (write == Write::overwrite) {
          std::fill_n(to, first, Scalar{0});
          std::copy_n(from, width, to + first);
          std::fill_n(to + first + width, all - first - width, Scalar{0});
        } else {
          for (Index c = 0; c < width; ++c) to[first + c] += from[c];
        }
      }
    });
  }

 private:
  static constexpr Index rows_per_task = 64;
};

}}}  // namespace lockstep::kernel
