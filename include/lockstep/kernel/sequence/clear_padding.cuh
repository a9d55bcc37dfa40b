// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include <lockstep/kernel/sequence/clear_padding.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version, bit-identical to the host's; queued on the stream.
template <>
struct ClearPadding<CudaSpace> : detail::KernelTypes<CudaSpace> {
  using Lengths = Vector<std::int32_t const>;  ///< tokens of each sequence

  /// Computes y = x with zeros in padding, or y += x in tokens only.
  template <class Scalar>
  static void run(Stream stream, SequenceLayout<CudaSpace> const& layout, Matrix<Scalar const> x, Matrix<Scalar> y,
                  Write write);

  /// Computes for each sequence the number of positions of a window of `reach` tokens that advances by `stride`.
  static void window_counts(Stream stream, Lengths lengths, Index reach, Index stride, Index padding, Index max_count,
                            Vector<std::int32_t> to);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/sequence/clear_padding.icuh>
#endif
