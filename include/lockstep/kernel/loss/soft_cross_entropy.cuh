// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/loss/soft_cross_entropy.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's shapes and formulas, queued on the stream. Shares are not checked.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture: no atomics, sums in a fixed order
template <>
struct SoftCrossEntropy<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// Computes losses, weights and gradient, as on the host. Skips a null gradient.   @throws ShapeError, ConfigError as
  /// on the host
  template <class Scalar, class Share>
  static void forward_backward(Stream stream, SequenceLayout<CudaSpace> layout, CrossEntropyOptions const& options,
                               Matrix<Scalar const> logits, Vector<Share const> shares, Vector<double> losses,
                               Vector<double> weights, Matrix<Scalar> gradient, Write write,
                               Vector<float const> factors = {});

 private:
  static constexpr Index classes_per_warp = 512;
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED) || defined(__CUDACC__)
#include <lockstep/kernel/loss/soft_cross_entropy.icuh>
#endif
