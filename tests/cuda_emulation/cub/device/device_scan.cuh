// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

#include <cuda_runtime.h>

namespace cub {

struct DeviceScan {
  /// As in CUB: works in place, too, and without temporary storage only its size is returned.
  template <class T, class Operation, class Count>
  static cudaError_t InclusiveScan(void* temporary, std::size_t& bytes, T const* in, T* out, Operation operation,
                                   Count count, cudaStream_t stream = nullptr) {
    if (!temporary) return bytes = 1, cudaSuccess;
    cuda_emulation::queue(stream, [=] {
      T total{};
      for (Count i = 0; i < count; ++i) {
        total = i == 0 ? in[0] : operation(total, in[i]);
        out[i] = total;
      }
    });
    return cudaPeekAtLastError();  // from an earlier call
  }
};

}  // namespace cub
