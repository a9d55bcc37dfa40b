// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/sequence/sequence_operation.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions and shapes, queued on the stream. One thread processes one channel of a slot.
/// Several threads share the sum over a sequence's tokens.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture; gradients of the sequences'
/// vectors differ from the host's by rounding
template <>
struct SequenceOperation<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// Computes z[s, c] = rule(x[s, c], by[r, c]) for each slot s of sequence r, including padding, or adds it to z.
  template <class Rule, class Scalar>
  static void run(Stream stream, SequenceLayout<CudaSpace> layout, Matrix<Scalar const> x, Matrix<Scalar const> by,
                  Matrix<Scalar> z, Write write);

  /// Computes dby[r, c] = the sum over the tokens s of sequence r of rule(dz[s, c], x[s, c]), or adds it to dby.
  template <class Rule, class Scalar>
  static void backward(Stream stream, SequenceLayout<CudaSpace> layout, Matrix<Scalar const> dz, Matrix<Scalar const> x,
                       Matrix<Scalar> dby, Write write);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED) || defined(__CUDACC__)
#include <lockstep/kernel/sequence/sequence_operation.icuh>
#endif
