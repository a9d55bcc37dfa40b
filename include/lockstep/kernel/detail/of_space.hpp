// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/memory/stream.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {

/// What a kernel is of a space whose header is not included: an error that names it.
template <class Space>
struct NotIncluded {
  static_assert(sizeof(Space) == 0, "Lockstep: include lockstep/cuda.cuh and compile with nvcc");
};

/// What kernels of a space are given: where they are queued, and what they work on.
template <class Space>
struct OfSpace {
  using Stream = memory::Stream<Space>;
  template <class T>
  using Vector = TensorView<T, 1, Space>;
  template <class T>
  using Matrix = TensorView<T, 2, Space>;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
