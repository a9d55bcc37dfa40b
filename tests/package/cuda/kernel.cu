// SPDX-License-Identifier: Apache-2.0
// A user's kernel: nvcc compiles this file with the flags and headers of lockstep::compiled_cuda.
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/memory/cuda.cuh>

#ifndef LOCKSTEP_COMPILED
#error "a file that links lockstep::compiled_cuda does not define LOCKSTEP_COMPILED"
#endif

using namespace lockstep;

__global__ void halve(TensorView<float, 1, CudaSpace> x) {
  Index const i = blockIdx.x * Index{blockDim.x} + threadIdx.x;
  if (i < x.size()) x.data[i] /= 2;
}

void halve_all(memory::Stream<CudaSpace> stream, TensorView<float, 1, CudaSpace> x) {
  halve<<<static_cast<unsigned>((x.size() + 255) / 256), 256, 0, stream.get()>>>(x);
}
