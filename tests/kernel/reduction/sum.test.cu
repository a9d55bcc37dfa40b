// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/reduction/sum.cuh>

#include <doctest/doctest.h>

#include <numeric>

#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;

TEST_CASE("reductions on CUDA count every element once") {
  if (!lockstep_test::has_gpu("kernel::Sum<CudaSpace>")) return;
  memory::CudaStream const stream;
  for (Index n : {0, 1, 31, 255, 256, 257, 5000}) {
    std::vector<double> x(static_cast<std::size_t>(n));
    std::iota(x.begin(), x.end(), 1.0);
    OnDevice<double> const device(x), total(std::vector<double>{-1});
    kernel::Sum<CudaSpace>::run(stream.view(), device.view(n), total.view(1).data);
    CHECK(total.values()[0] == static_cast<double>(n * (n + 1) / 2));
  }
}
