// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/detail/launch.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

namespace detail { inline namespace LOCKSTEP_CUDA_ABI {

template <class Scalar>
struct NonzeroMask {
  Scalar* x;
  __device__ void operator()(Index i) const { x[i] = x[i] != Scalar{0} ? Scalar{1} : Scalar{0}; }
};

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace detail

/// Sets x[i] to 1 if x[i] is not 0, else to 0; queued on the stream.
template <class Scalar>
void nonzero_mask(memory::Stream<CudaSpace> stream, TensorView<Scalar, 1, CudaSpace> x) {
  detail::for_elements("kernel::nonzero_mask", stream, x.size(), detail::NonzeroMask<Scalar>{x.data});
}
/// Loads the kernel onto the device, so that `nonzero_mask` does not wait for other queued work.
template <class Scalar>
void load_nonzero_mask() {
  detail::load("kernel::nonzero_mask", detail::run_elements<detail::NonzeroMask<Scalar>>);
}

template <class Scalar>
[[deprecated("kernel::nonzero_mask")]] void truth(memory::Stream<CudaSpace> stream,
                                                  TensorView<Scalar, 1, CudaSpace> x) {
  nonzero_mask(stream, x);
}
template <class Scalar>
[[deprecated("kernel::load_nonzero_mask")]] void load_truth() {
  load_nonzero_mask<Scalar>();
}

}}}  // namespace lockstep::kernel
