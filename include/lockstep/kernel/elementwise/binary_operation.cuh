// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/elementwise/binary_operation.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions, shapes and bits, queued on the stream.
template <>
struct BinaryOperation<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// Computes z = rule(x, y).
  template <class Rule, class Scalar>
  static void forward(Stream stream, Vector<Scalar const> x, Vector<Scalar const> y, Vector<Scalar> z);

  /// Computes dx = rule(dz, y), or adds it to dx, for a gradient rule of the forward rule.
  template <class Rule, class Scalar>
  static void backward(Stream stream, Vector<Scalar const> dz, Vector<Scalar const> y, Vector<Scalar> dx, Write write);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED) || defined(__CUDACC__)
#include <lockstep/kernel/elementwise/binary_operation.icuh>
#endif
