// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/convolution/convolution.cuh>

#include <doctest/doctest.h>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/float16.hpp>

#include "cuda_convolution.cuh"

using lockstep::bfloat16, lockstep::float16;

TEST_CASE_TEMPLATE("convolutions on CUDA equal the host's within rounding", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::Convolution<CudaSpace>")) return;
  cuda_convolution::check_beside_host<T>();
}

TEST_CASE_TEMPLATE("weight gradients in 16 bits equal those of equal float values, within the rounding of sums", Low,
                   bfloat16, float16) {
  if (!lockstep_test::has_gpu("kernel::Convolution<CudaSpace>")) return;
  cuda_convolution::check_weight_in_16_bits<Low>();
}
