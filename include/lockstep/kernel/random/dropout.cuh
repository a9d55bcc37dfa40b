// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/random/dropout.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version of the primary template.
template <>
struct Dropout<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// CUDA version, bit-identical to the host's; queued on `stream`.
  template <class Scalar>
  static void apply(Stream stream, DropoutMask mask, SequenceLayout<CudaSpace> layout, Matrix<Scalar const> x,
                    Matrix<Scalar> y, Write write);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/random/dropout.icuh>
#endif
