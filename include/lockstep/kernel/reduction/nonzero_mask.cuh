// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Sets x[i] to 1 if x[i] is not 0, else to 0; queued on the stream.
template <class Scalar>
void nonzero_mask(memory::Stream<CudaSpace> stream, TensorView<Scalar, 1, CudaSpace> x);
/// Loads the kernel onto the device, so that `nonzero_mask` does not wait for other queued work.
template <class Scalar>
void load_nonzero_mask();

/// Deprecated: use nonzero_mask().
template <class Scalar>
[[deprecated("kernel::nonzero_mask")]] void truth(memory::Stream<CudaSpace> stream,
                                                  TensorView<Scalar, 1, CudaSpace> x) {
  nonzero_mask(stream, x);
}
/// Deprecated: use load_nonzero_mask().
template <class Scalar>
[[deprecated("kernel::load_nonzero_mask")]] void load_truth() {
  load_nonzero_mask<Scalar>();
}

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/reduction/nonzero_mask.icuh>
#endif
