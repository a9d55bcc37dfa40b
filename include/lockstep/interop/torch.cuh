// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ATen/Context.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime.h>

#include <lockstep/core/error.hpp>
#include <lockstep/interop/torch.hpp>
#include <lockstep/memory/cuda.cuh>
#include <lockstep/memory/cuda_graph.cuh>

// Trains a `torch::nn::Module` on GPUs, under parallel::OnCuda: interop::Torch of lockstep/interop/torch.hpp. Needs a
// LibTorch that is built for CUDA.
namespace lockstep { inline namespace LOCKSTEP_ABI { namespace interop::detail {

/// On a GPU: in the stream itself, so that torch's work is in order with Lockstep's.
template <>
class TorchPlace<CudaSpace> {
 public:
  /// @throws CudaError while the stream is recorded
  explicit TorchPlace(memory::Stream<CudaSpace> stream) : guard_(stream_of(stream)) {}

  /// Returns torch's name of the calling thread's GPU.
  [[nodiscard]] static torch::Device device() { return c10::cuda::getCurrentCUDAStream().device(); }

 private:
  static c10::cuda::CUDAStream stream_of(memory::Stream<CudaSpace> stream) {
    if (memory::is_capturing(stream)) throw CudaError("interop::Torch: a pass of a torch module cannot be recorded");
    int device = 0;
    memory::check_cuda(cudaGetDevice(&device), "cudaGetDevice");
    auto const index = static_cast<c10::DeviceIndex>(device);
    c10::cuda::set_device(index);  // torch's own number of the thread's device may be an earlier one
    auto const current = c10::cuda::getStreamFromExternal(stream.get(), index);
    at::globalContext().lazyInitDevice(current.device().type());  // before the guard, whose end needs it
    return current;
  }

  c10::cuda::CUDAStreamGuard guard_;
};

}}}  // namespace lockstep::interop::detail
