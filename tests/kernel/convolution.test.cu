// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/convolution.cuh>

#include <doctest/doctest.h>

#include "kernel/cuda_convolution.cuh"

TEST_CASE_TEMPLATE("convolutions on CUDA are the host's, but for roundings", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::Convolution<CudaSpace>")) return;
  cuda_convolution::check_beside_host<T>();
}
