// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/memory/stream.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// A kernel for a space whose header is not included: a compile-time error that names the header.
template <class Space>
struct NotIncluded {
  static_assert(sizeof(Space) == 0, "Lockstep: include lockstep/cuda.cuh and compile with nvcc");
};

/// Types of the arguments of a space's kernels: the stream, and views of the data.
template <class Space>
struct KernelTypes {
  using Stream = memory::Stream<Space>;
  template <class Scalar>
  using Vector = TensorView<Scalar, 1, Space>;
  template <class Scalar>
  using Matrix = TensorView<Scalar, 2, Space>;
};

}}}  // namespace lockstep::kernel::detail
