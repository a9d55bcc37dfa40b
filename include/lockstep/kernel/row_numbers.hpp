// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <numeric>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/memory/stream.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// Consecutive numbers.
template <class Space>
struct RowNumbers {
  static_assert(sizeof(Space) == 0, "Lockstep: include lockstep/cuda.cuh and compile with nvcc");
};

template <>
struct RowNumbers<HostSpace> {
  /// to[i] = first + i.
  /// @shape to [n]   @determinism bitwise
  static void fill(memory::Stream<HostSpace>, std::int32_t first, TensorView<std::int32_t, 1, HostSpace> to) noexcept {
    std::iota(to.data, to.data + to.size(), first);
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
