// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/copy/copy.cuh>

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;

TEST_CASE("copies on CUDA may overlap, in both directions") {
  if (!lockstep_test::has_gpu("kernel::Copy<CudaSpace>")) return;
  memory::CudaStream const stream;
  std::vector<int> all(100);
  std::iota(all.begin(), all.end(), 0);
  struct Places {
    Index from, to, count;
  };
  for (auto [from, to, count] : {Places{0, 50, 50}, Places{50, 0, 50}, Places{0, 1, 99}, Places{1, 0, 99},
                                 Places{7, 7, 9}, Places{10, 30, 60}, Places{3, 5, 0}}) {
    OnDevice<int> const device(all);
    kernel::Copy<CudaSpace>::run<int>(stream.view(), device.view(100).data + from, device.view(100).data + to, count);
    auto expected = all;
    std::copy_n(all.begin() + from, count, expected.begin() + to);
    CHECK(device.values() == expected);
  }
}
