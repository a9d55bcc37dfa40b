// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/convert.cuh>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;

TEST_CASE_TEMPLATE("elements keep their values in another type on CUDA", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::Convert<CudaSpace>")) return;
  memory::CudaStream const stream;
  for (Index n : {0, 1, 257, 5000}) {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(n));
    std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
    OnDevice<std::uint8_t> const from(bytes);
    OnDevice<T> const to(std::vector<T>(bytes.size()));
    kernel::Convert<CudaSpace>::run<T, std::uint8_t>(stream.view(), from.view(n), to.view(n));
    auto const got = to.values();
    CHECK(std::equal(got.begin(), got.end(), bytes.begin(), bytes.end()));
  }
}
