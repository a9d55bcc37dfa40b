// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/convolution/upsample.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions, shapes and bits, queued on the stream. One thread processes one channel of a
/// position. In the backward pass it sums over the positions of y, so each element has one writer. Sums of 16-bit types
/// are computed in float.
template <>
struct Upsample<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// Computes y = x at the nearest position.
  template <class Scalar>
  static void forward(Stream stream, UpsampleShape const& s, Vector<Scalar const> x, Vector<Scalar> y);

  /// Computes dx = the sum of dy over the copies of each position of x, or adds it to dx.
  template <class Scalar>
  static void backward(Stream stream, UpsampleShape const& s, Vector<Scalar const> dy, Vector<Scalar> dx, Write write);

  /// Computes y = x interpolated linearly along each axis.
  template <class Scalar>
  static void linear(Stream stream, UpsampleShape const& s, Vector<Scalar const> x, Vector<Scalar> y);

  /// Computes dx = the sum of dy by the weights of the interpolation, or adds it to dx.
  template <class Scalar>
  static void linear_backward(Stream stream, UpsampleShape const& s, Vector<Scalar const> dy, Vector<Scalar> dx,
                              Write write);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/convolution/upsample.icuh>
#endif
