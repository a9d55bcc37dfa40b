// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/memory/stream.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// One number of many.
template <class Space>
struct Total {
  static_assert(sizeof(Space) == 0, "Lockstep: include lockstep/cuda.cuh and compile with nvcc");
};

template <>
struct Total<HostSpace> {
  /// *to = the sum of all elements, in order.
  /// @shape x [n]
  /// @determinism bitwise
  static void run(memory::Stream<HostSpace>, TensorView<double const, 1, HostSpace> x, double* to) noexcept {
    double sum = 0;
    for (Index i = 0; i < x.size(); ++i) sum += x.data[i];
    *to = sum;
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
