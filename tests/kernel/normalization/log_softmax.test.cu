// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/normalization/log_softmax.cuh>

#include <doctest/doctest.h>

#include "kernel/normalization/cuda_softmax.cuh"

using namespace lockstep;

TEST_CASE_TEMPLATE("log softmax on CUDA equals the host's within rounding", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::LogSoftmax<CudaSpace>")) return;
  // |y| is below 256, of which a unit in the last place is 16^2 / 2.
  cuda_softmax::check<kernel::LogSoftmax, T>(16, 8);
}
