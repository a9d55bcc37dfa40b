// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/pooling/pooling.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions and shapes, queued on the stream. Several threads share the tokens of a sum
/// or a maximum. A warp writes the gradients of adjacent slots, 16 bytes per lane. One thread writes the gradient of
/// one maximum, after all gradients are set to zero.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture; a mean or sum differs from the
/// host's by rounding
template <>
struct Pooling<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// Computes y[r] = the sum over the n tokens of sequence r, divided by n for the mean; zeros without tokens.
  template <class Scalar>
  static void reduce(Stream stream, SequenceLayout<CudaSpace> layout, TokenReduction reduction, Matrix<Scalar const> x,
                     Matrix<Scalar> y);

  /// Computes dx = dy[r], divided by n for the mean, for each of the n tokens of sequence r and zero in padding, or
  /// adds it to dx.
  template <class Scalar>
  static void reduce_backward(Stream stream, SequenceLayout<CudaSpace> layout, TokenReduction reduction,
                              Matrix<Scalar const> dy, Matrix<Scalar> dx, Write write);

  /// Computes y[r] = the first or the last token of sequence r; zeros without tokens.
  template <class Scalar>
  static void token(Stream stream, SequenceLayout<CudaSpace> layout, PooledToken which, Matrix<Scalar const> x,
                    Matrix<Scalar> y);

  /// Computes dx = dy[r] for that token of sequence r and zero in all other slots, or adds it to dx.
  template <class Scalar>
  static void token_backward(Stream stream, SequenceLayout<CudaSpace> layout, PooledToken which,
                             Matrix<Scalar const> dy, Matrix<Scalar> dx, Write write);

  /// Computes y[r] = the largest value of each channel over the tokens of sequence r, or 0 without tokens, and the
  /// token that has it.
  template <class Scalar>
  static void max(Stream stream, SequenceLayout<CudaSpace> layout, Matrix<Scalar const> x, Matrix<Scalar> y,
                  Matrix<std::int32_t> argmax);

  /// Computes dx = dy[r] at the tokens that won and zero elsewhere, or adds it to dx.
  template <class Scalar>
  static void max_backward(Stream stream, SequenceLayout<CudaSpace> layout, Matrix<Scalar const> dy,
                           Matrix<std::int32_t const> argmax, Matrix<Scalar> dx, Write write);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/pooling/pooling.icuh>
#endif
