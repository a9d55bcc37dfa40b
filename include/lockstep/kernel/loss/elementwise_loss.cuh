// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/loss/elementwise_loss.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions and shapes, queued on the stream. Targets are not checked with an exception,
/// which would have to wait for the device. A target that the rule does not accept makes loss and gradient NaN.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture: no atomics, sums in a fixed order
template <>
struct ElementwiseLoss<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// Returns the number of elements of `losses` and `weights`.
  [[nodiscard]] static constexpr Index chunks(Index slots, Index width) noexcept {
    return ElementwiseLoss<HostSpace>::chunks(slots, width);
  }

  /// Sums the losses and weights of each chunk of slots, and computes the gradient, as on the host. Skips a null
  /// gradient.
  template <class Scalar, class Other, class Rule>
  static void forward_backward(Stream stream, SequenceLayout<CudaSpace> layout, Rule rule, Accumulate<Scalar> factor,
                               Matrix<Scalar const> prediction, Matrix<Other const> target, Vector<double> losses,
                               Vector<double> weights, Matrix<Scalar> gradient, Write write,
                               Vector<float const> factors = {}, Vector<bool const> present = {});
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED) || defined(__CUDACC__)
#include <lockstep/kernel/loss/elementwise_loss.icuh>
#endif
