// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>

#include <vector>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/memory/buffer.hpp>
#include <lockstep/memory/cuda.cuh>

#include "skip.hpp"

namespace lockstep_test {

/// True if there is a GPU; otherwise the case is reported as skipped, and must return.
inline bool has_gpu(char const* what) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0) return true;
  skip(Need::gpu, what);
  return false;
}

/// A vector's copy in device memory.
template <class T>
class OnDevice {
 public:
  explicit OnDevice(std::vector<T> const& values) : size_(static_cast<lockstep::Index>(values.size())) {
    lockstep::memory::CudaResource resource;
    memory_ = lockstep::memory::Buffer<T, lockstep::CudaSpace>(size_, resource);
    copy(memory_.data(), values.data(), cudaMemcpyHostToDevice);
    // The call returns before the last bytes arrive, and our streams do not wait for its stream.
    lockstep::memory::check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  template <class... I>
  [[nodiscard]] lockstep::TensorView<T, sizeof...(I), lockstep::CudaSpace> view(I... extents) const {
    return {memory_.data(), {static_cast<lockstep::Index>(extents)...}};
  }
  /// Waits for the whole device.
  [[nodiscard]] std::vector<T> values() const {
    std::vector<T> out(static_cast<std::size_t>(size_));
    lockstep::memory::check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    copy(out.data(), memory_.data(), cudaMemcpyDeviceToHost);
    return out;
  }

 private:
  void copy(T* to, T const* from, cudaMemcpyKind kind) const {
    if (size_ > 0)
      lockstep::memory::check_cuda(cudaMemcpy(to, from, static_cast<std::size_t>(size_) * sizeof(T), kind),
                                   "cudaMemcpy");
  }
  lockstep::memory::Buffer<T, lockstep::CudaSpace> memory_;
  lockstep::Index size_;
};

}  // namespace lockstep_test
