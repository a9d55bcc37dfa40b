// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/detail/launch.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

namespace detail { inline namespace LOCKSTEP_CUDA_ABI {

template <class T>
struct NonzeroMask {
  T* x;
  __device__ void operator()(Index i) const { x[i] = x[i] != T{0} ? T{1} : T{0}; }
};

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace detail

/// Sets x[i] to 1 if x[i] is not 0, else to 0; queued on the stream.
template <class T>
void nonzero_mask(memory::Stream<CudaSpace> stream, TensorView<T, 1, CudaSpace> x) {
  detail::for_elements("kernel::nonzero_mask", stream, x.size(), detail::NonzeroMask<T>{x.data});
}
/// Loads the kernel onto the device, so that `nonzero_mask` does not wait for other queued work.
template <class T>
void load_nonzero_mask() {
  detail::load("kernel::nonzero_mask", detail::run_elements<detail::NonzeroMask<T>>);
}

template <class T>
[[deprecated("kernel::nonzero_mask")]] void truth(memory::Stream<CudaSpace> stream, TensorView<T, 1, CudaSpace> x) {
  nonzero_mask(stream, x);
}
template <class T>
[[deprecated("kernel::load_nonzero_mask")]] void load_truth() {
  load_nonzero_mask<T>();
}

}}}  // namespace lockstep::kernel
