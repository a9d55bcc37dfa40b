// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/loss/ctc.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's shapes and formulas, queued on the stream. Labels and lengths are not checked with an
/// exception, which would have to wait for the device. A label outside the classes makes the loss NaN, and too few
/// tokens make it infinite.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture: no atomics, sums in a fixed order
template <>
struct Ctc<CudaSpace> : detail::KernelTypes<CudaSpace> {
  using Layout = SequenceLayout<CudaSpace>;  ///< tokens or labels of each sequence

  /// Returns the number of elements of memory that the loss needs.
  [[nodiscard]] static Index memory_elements(Index slots, Index rows, Index longest_labels, Index classes) noexcept {
    return Ctc<HostSpace>::memory_elements(slots, rows, longest_labels, classes);
  }

  /// Computes losses, weights and gradient, as on the host. Skips a null gradient.
  /// @shape memory [memory_elements(...)], in the type in which Scalar is summed
  template <class Scalar, class Label>
  static void forward_backward(Stream stream, Layout layout, Layout label_layout, CtcOptions const& options,
                               Matrix<Scalar const> logits, Vector<Label const> labels, Vector<double> losses,
                               Vector<double> weights, Matrix<Scalar> gradient, Write write,
                               Vector<Accumulate<Scalar>> memory);

 private:
  static constexpr Index numbers_per_warp = 128;
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED) || defined(__CUDACC__)
#include <lockstep/kernel/loss/ctc.icuh>
#endif
