// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/exp.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/detail/lanes.hpp>
#include <lockstep/kernel/detail/log.hpp>
#include <lockstep/kernel/detail/write_each.hpp>
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
    auto const width = x.extent[1];
    stream.pool().for_ranges(x.extent[0], rows_per_task, [=](Index begin, Index end) {
      with_best_instructions([=](auto vectors) {
        for (Index row = begin; row < end; ++row) {
          auto const* const from = x.data + row * width;
          auto* const to = y.data + row * width;
          Scalar const maximum = detail::largest(vectors, from, width);
          for (Index c = 0; c < width; ++c) to[c] = detail::exp(from[c] - maximum);
          Scalar const log_sum = detail::log(detail::sum(vectors, to, width));
          for (Index c = 0; c < width; ++c) to[c] = from[c] - maximum - log_sum;
        }
      });
    });
  }

  /// Computes dx[r] = dy[r] - exp(y[r]) * sum(dy[r]), or adds it to dx.
  /// @shape dy, y, dx [rows, width]
  template <class Scalar>
  static void backward(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> y, Matrix<Scalar> dx, Write write) {
    auto const width = y.extent[1];
    stream.pool().for_ranges(y.extent[0], rows_per_task, [=](Index begin, Index end) {
      with_best_instructions([=](auto vectors) {
        for (Index row = begin; row < end; ++row) {
          auto const at = row * width;
          Scalar const total = detail::sum(vectors, dy.data + at, width);
          detail::write_each(at, at + width, dx.data, write,
                             [=](Index i) { return dy.data[i] - detail::exp(y.data[i]) * total; });
        }
      });
    });
  }

 private:
  static constexpr Index rows_per_task = 64;
};

}}}  // namespace lockstep::kernel
