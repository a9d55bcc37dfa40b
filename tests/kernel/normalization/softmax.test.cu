// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/normalization/softmax.cuh>

#include <doctest/doctest.h>

#include "kernel/normalization/cuda_softmax.cuh"

using namespace lockstep;

TEST_CASE_TEMPLATE("softmax on CUDA equals the host's within rounding", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::Softmax<CudaSpace>")) return;
  cuda_softmax::check<kernel::Softmax, T>(6, 8);
}
