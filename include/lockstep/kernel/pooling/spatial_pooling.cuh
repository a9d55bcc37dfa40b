// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/pooling/detail/check_pooling.hpp>
#include <lockstep/kernel/pooling/spatial_pooling.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions, shapes and bits, queued on the stream. One thread processes one channel of a
/// position. In the backward pass, it sums over the windows that contain its position of x, so each element has one
/// writer.
template <>
struct SpatialPooling<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// Computes y = the largest x of each window, and its position in x unless argmax is null.   @throws ShapeError as on
  /// the host
  template <class Scalar>
  static void max(Stream stream, PoolingShape const& s, Vector<Scalar const> x, Vector<Scalar> y,
                  Vector<std::int32_t> argmax);

  /// Computes dx = dy at the positions that won, summed over windows, and zero elsewhere, or adds it to dx.
  template <class Scalar>
  static void max_backward(Stream stream, PoolingShape const& s, Vector<Scalar const> dy,
                           Vector<std::int32_t const> argmax, Vector<Scalar> dx, Write write);

  /// Computes y = the sum of each window, divided by the divisor of the window.   @throws ShapeError as on the host
  template <class Scalar>
  static void average(Stream stream, PoolingShape const& s, Vector<Scalar const> x, Vector<Scalar> y,
                      PoolingDivisor divisor = PoolingDivisor::padded);

  /// Computes dx = the sum of dy, divided by the divisor of its window, over the windows that contain a position, or
  /// adds it to dx.
  template <class Scalar>
  static void average_backward(Stream stream, PoolingShape const& s, Vector<Scalar const> dy, Vector<Scalar> dx,
                               Write write, PoolingDivisor divisor = PoolingDivisor::padded);

  /// Implementation of `average`; public because nvcc requires it.
  template <class Sum, class Scalar>
  static void average_by(Stream stream, PoolingShape const& s, Vector<Scalar const> x, Vector<Scalar> y,
                         PoolingDivisor divisor);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/pooling/spatial_pooling.icuh>
#endif
