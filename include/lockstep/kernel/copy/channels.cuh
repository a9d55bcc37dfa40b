// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/copy/channels.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version, bit-identical to the host's; queued on the stream.
template <>
struct Channels<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// Copies x to the columns of y from `first` on; other columns stay unchanged.
  template <class Scalar>
  static void put(Stream stream, Matrix<Scalar const> x, Index first, Matrix<Scalar> y);

  /// Copies the columns of y from `first` on to x, or adds them to x.
  template <class Scalar>
  static void take(Stream stream, Matrix<Scalar const> y, Index first, Matrix<Scalar> x, Write write);

  /// Copies dx to the columns of dy from `first` on and sets others to zero, or adds dx to those columns.
  template <class Scalar>
  static void take_backward(Stream stream, Matrix<Scalar const> dx, Index first, Matrix<Scalar> dy, Write write);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/copy/channels.icuh>
#endif
