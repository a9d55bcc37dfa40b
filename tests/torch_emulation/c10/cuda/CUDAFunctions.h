// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <c10/core/Device.h>
#include <cuda_runtime.h>

namespace c10::cuda {

/// Torch's number of the calling thread's device, or -1 for CUDA's. A guard of torch sets it at its end if the device
/// that it restores has no context yet. Later calls of cudaSetDevice do not change it.
inline thread_local DeviceIndex target_device = -1;

inline DeviceIndex current_device() {
  int device = target_device;
  if (device < 0) cudaGetDevice(&device);
  return static_cast<DeviceIndex>(device);
}
inline void set_device(DeviceIndex device) {
  target_device = -1;
  cudaSetDevice(device);
}

}  // namespace c10::cuda
