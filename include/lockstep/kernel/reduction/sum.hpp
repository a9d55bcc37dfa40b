// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/detail/kernel_types.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Reduction of a vector to a scalar.
template <class Space>
struct Sum : detail::NotIncluded<Space> {};

/// CPU version of the primary template.
template <>
struct Sum<HostSpace> : detail::KernelTypes<HostSpace> {
  /// Computes *to = the sum of all elements, in order.
  /// @shape x [n]
  /// @determinism bitwise
  static void run(Stream, Vector<double const> x, double* to) noexcept {
    double sum = 0;
    for (Index i = 0; i < x.size(); ++i) sum += x.data[i];
    *to = sum;
  }
  /// Computes to[0] = the sum of x and to[1] = the sum of y, as `run` does.
  /// @shape x [n]   @shape y [m]   @shape to [2]
  static void run_both(Stream stream, Vector<double const> x, Vector<double const> y, double* to) noexcept {
    run(stream, x, to);
    run(stream, y, to + 1);
  }
};

}}}  // namespace lockstep::kernel
