// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/loss/cross_entropy.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's shapes and formulas, queued on the stream. Labels are not checked with an exception,
/// which would have to wait for the device. A label outside the classes makes the row's loss and gradient NaN. For
/// logits of 16 bits, exponentials are powers of two, with relative errors of about (|x - maximum| + 4) * 2^-24.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture: no atomics, sums in a fixed order
template <>
struct CrossEntropy<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// Computes losses, weights and gradient, as on the host. Skips a null gradient.   @throws ShapeError if the shapes
  /// disagree; ConfigError for a smoothing outside [0, 1]
  template <class Scalar, class Label>
  static void forward_backward(Stream stream, SequenceLayout<CudaSpace> layout, CrossEntropyOptions const& options,
                               Matrix<Scalar const> logits, Vector<Label> labels, Vector<double> losses,
                               Vector<double> weights, Matrix<Scalar> gradient, Write write,
                               Vector<float const> factors = {});

 private:
  /// Logits of a row that a thread of a warp or of a block holds in registers.
  static constexpr int classes_per_thread = 32;
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED) || defined(__CUDACC__)
#include <lockstep/kernel/loss/cross_entropy.icuh>
#endif
