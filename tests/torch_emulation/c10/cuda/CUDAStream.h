// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The part of LibTorch's interface to CUDA that Lockstep uses, for the emulation. Device memory is the heap, so torch
/// computes on the CPU. It does so at once, and the emulation's streams run later: a stream becomes current only after
/// its work is done.
#include <c10/core/Device.h>
#include <cuda_runtime.h>

#include <stdexcept>

namespace c10::cuda {

struct CUDAStream {
  cudaStream_t stream;

  [[nodiscard]] Device device() const {
    if (!stream)
      throw std::logic_error("torch would compute in the default stream, which does not wait for Lockstep's");
    return Device(DeviceType::CPU);
  }
};
inline thread_local CUDAStream current_stream{nullptr};

inline CUDAStream getStreamFromExternal(cudaStream_t stream, DeviceIndex device) {
  int its_device = 0;
  cudaGetDevice(&its_device);
  if (device != its_device) throw std::logic_error("torch would take the stream for one of another device");
  return {stream};
}
inline CUDAStream getCurrentCUDAStream() { return current_stream; }

}  // namespace c10::cuda
