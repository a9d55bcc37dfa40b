// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/elementwise/channel_bias.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions and shapes, queued on the stream. The bias's gradient is summed in other
/// chunks, and is float for 16-bit activations.
/// @determinism bitwise
template <>
struct ChannelBias<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// Computes y += bias in each row.
  template <class Scalar>
  static void forward(Stream stream, Vector<Scalar const> bias, Matrix<Scalar> y);

  /// Returns the number of elements that `backward` needs for its partial sums.
  [[nodiscard]] static Index partial_elements(Index rows, Index channels) noexcept;

  /// Computes dbias = the sum of the rows of dy, or adds it to dbias.
  template <class Scalar>
  static void backward(Stream stream, Matrix<Scalar const> dy, Vector<Accumulate<Scalar>> dbias, Write write,
                       Accumulate<Scalar>* partial);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/elementwise/channel_bias.icuh>
#endif
