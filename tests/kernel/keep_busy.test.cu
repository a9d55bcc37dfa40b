// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/keep_busy.cuh>

#include <doctest/doctest.h>

#include <lockstep/memory/cuda.cuh>

#include "memory/device.hpp"

using namespace lockstep;

TEST_CASE("a busy stream has not started later work at once, and executes it afterwards") {
  if (!lockstep_test::has_gpu("kernel::KeepBusy")) return;
  memory::CudaStream const stream;
  memory::CudaEvent later;
  kernel::KeepBusy const busy;
  busy.run(stream.view(), 0);
  stream.view().synchronize();
  busy.run(stream.view(), 200000);
  later.record(stream.view());
  CHECK_FALSE(later.reached());
  stream.view().synchronize();
  CHECK(later.reached());
  CHECK(stream.view().queued().kernels == 2);
}
