// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/detail/launch.cuh>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

namespace detail {
inline namespace LOCKSTEP_CUDA_ABI {

template <class T>
struct Truth {
  T* x;
  __device__ void operator()(Index i) const { x[i] = x[i] != T{0} ? T{1} : T{0}; }
};

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace detail

/// x[i] = 1 where x[i] is not 0, else 0; queued on the stream.
template <class T>
void truth(memory::Stream<CudaSpace> stream, TensorView<T, 1, CudaSpace> x) {
  detail::for_elements("kernel::truth", stream, x.size(), detail::Truth<T>{x.data});
}
/// The device has the kernel afterwards: then `truth` does not wait for what else is queued.
template <class T>
void load_truth() {
  detail::load("kernel::truth", detail::run_elements<detail::Truth<T>>);
}

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
