// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/sequence/arange.cuh>

#include <doctest/doctest.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;

TEST_CASE("consecutive numbers on CUDA equal the host's") {
  if (!lockstep_test::has_gpu("kernel::Arange<CudaSpace>")) return;
  memory::CudaStream const stream;
  for (Index rows : {0, 1, 33, 1000}) {
    std::vector<std::int32_t> expected(static_cast<std::size_t>(rows) + 1, -1);
    OnDevice<std::int32_t> const numbers(expected);
    std::iota(expected.begin(), expected.end() - 1, 12);
    kernel::Arange<CudaSpace>::fill(stream.view(), 12, numbers.view(rows));
    CHECK(numbers.values() == expected);
  }
}
