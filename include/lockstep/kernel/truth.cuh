// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/detail/launch.cuh>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// x[i] = 1 where x[i] is not 0, else 0; queued on the stream.
template <class T>
void truth(memory::Stream<CudaSpace> stream, TensorView<T, 1, CudaSpace> x) {
  detail::for_elements("kernel::truth", stream, x.size(),
                       [=] __device__(Index i) { x.data[i] = x.data[i] != T{0} ? T{1} : T{0}; });
}

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
