// SPDX-License-Identifier: Apache-2.0
// Calls CUDA's runtime, and nothing of Lockstep: its libraries are empty.
#include <cstdio>

#include <cuda_runtime.h>

#ifndef LOCKSTEP_COMPILED
#error "a program that links lockstep::compiled_cuda does not define LOCKSTEP_COMPILED"
#endif

int main() {
  int devices = 0;
  auto const result = cudaGetDeviceCount(&devices);
  std::printf("devices: %d (%s)\n", result == cudaSuccess ? devices : 0, cudaGetErrorName(result));
}
