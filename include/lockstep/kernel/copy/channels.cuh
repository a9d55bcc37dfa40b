// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/copy/channels.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version, bit-identical to the host's; queued on the stream.
template <>
struct Channels<CudaSpace> : detail::KernelTypes<CudaSpace> {
  template <class Scalar>
  static void put(Stream stream, Matrix<Scalar const> x, Index first, Matrix<Scalar> y);

  template <class Scalar>
  static void take(Stream stream, Matrix<Scalar const> y, Index first, Matrix<Scalar> x, Write write);

  template <class Scalar>
  static void take_backward(Stream stream, Matrix<Scalar const> dx, Index first, Matrix<Scalar> dy, Write write);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/copy/channels.icuh>
#endif
