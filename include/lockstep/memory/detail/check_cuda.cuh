// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <string>

#include <lockstep/core/error.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace memory {

/// Returns CUDA's name of a version, such as "13.0" for 13000.
[[nodiscard]] inline std::string cuda_version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

namespace detail {

/// Returns a remedy for an error that the program did not cause, after a semicolon; empty if there is none.
[[nodiscard]] inline std::string cuda_remedy(cudaError_t status) {
  switch (status) {
    case cudaErrorInsufficientDriver: {
      int driver = 0, runtime = 0;
      cudaDriverGetVersion(&driver);
      cudaRuntimeGetVersion(&runtime);
      if (driver == 0) return "; this machine has no NVIDIA driver, or this process cannot see it";
      return "; the driver is for CUDA " + cuda_version(driver) + " and the program was built with CUDA " +
             cuda_version(runtime) + ": update the driver, or build with an older toolkit";
    }
    case cudaErrorNoDevice:
      return "; nvidia-smi lists the GPUs, and CUDA_VISIBLE_DEVICES hides all GPUs that it does not name";
    case cudaErrorInvalidDevice: {
      int gpus = 0;
      if (cudaGetDeviceCount(&gpus) != cudaSuccess) return "";
      return "; this process sees " + std::to_string(gpus) + (gpus == 1 ? " GPU" : " GPUs") + ", numbered from 0";
    }
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
      return "; the program was not built for this GPU: configure with -DCMAKE_CUDA_ARCHITECTURES=native on this "
             "machine, or with the GPU's number";
    case cudaErrorMemoryAllocation:
      return "; other processes may use this GPU's memory: nvidia-smi lists them; end them, or choose another GPU "
             "(--gpu-ids or CUDA_VISIBLE_DEVICES)";
    case cudaErrorIllegalAddress:
      return "; a kernel read or wrote outside its arrays: compute-sanitizer names it. This process cannot use the GPU "
             "any more";
    default:
      return "";
  }
}

}  // namespace detail

/// Throws an error for a failed CUDA call; names the call, CUDA's reason and a remedy, if known. Clears the runtime's
/// error, unless it is permanent.
/// @throws CudaError
inline void check_cuda(cudaError_t status, char const* call) {
  if (status == cudaSuccess) return;
  auto const text = std::string(call) + ": " + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) + ")" +
                    detail::cuda_remedy(status);
  static_cast<void>(cudaGetLastError());  // cleared: CUB checks it after each launch
  throw CudaError(text);
}

namespace detail {

/// Checks a call that allocates `bytes`; appends `remedy` if memory is exhausted.
inline void check_cuda_memory(cudaError_t status, char const* call, std::size_t bytes, std::string const& remedy) {
  if (status == cudaSuccess) return;
  auto const asked = std::string(call) + " of " + std::to_string(bytes) + " bytes";
  if (status != cudaErrorMemoryAllocation) return check_cuda(status, asked.c_str());
  static_cast<void>(cudaGetLastError());  // cleared: CUB checks it after each launch
  throw CudaError(asked + ": " + cudaGetErrorString(status) + "; " + remedy);
}

/// Returns the free memory of the current device, for an error.
[[nodiscard]] inline std::string free_cuda_memory() {
  int gpu = 0;
  std::size_t free = 0, total = 0;
  if (cudaGetDevice(&gpu) != cudaSuccess || cudaMemGetInfo(&free, &total) != cudaSuccess) return "";
  return "GPU " + std::to_string(gpu) + " has " + std::to_string(free >> 20) + " of " + std::to_string(total >> 20) +
         " MiB free; ";
}

}  // namespace detail
}}}  // namespace lockstep::memory
