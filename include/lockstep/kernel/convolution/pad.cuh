// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/convolution/pad.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions, shapes and bits, queued on the stream. One thread processes one channel of a
/// position. In the backward pass, it sums over the copies of its position of x, so each element has one writer. Sums
/// of 16-bit types are computed in float.
template <>
struct Pad<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// Computes y = x at the position that each position copies.
  template <class Scalar>
  static void forward(Stream stream, PadShape const& s, Vector<Scalar const> x, Vector<Scalar> y);

  /// Computes dx = the sum of dy over the copies of each position of x, or adds it to dx.
  template <class Scalar>
  static void backward(Stream stream, PadShape const& s, Vector<Scalar const> dy, Vector<Scalar> dx, Write write);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/convolution/pad.icuh>
#endif
