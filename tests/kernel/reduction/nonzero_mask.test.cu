// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/reduction/nonzero_mask.cuh>

#include <doctest/doctest.h>

#include <limits>

#include "memory/device.hpp"

using namespace lockstep;

TEST_CASE_TEMPLATE("values other than 0 become 1", T, std::int64_t, std::uint8_t) {
  if (!lockstep_test::has_gpu("kernel::nonzero_mask")) return;
  memory::CudaStream const stream;
  for (Index n : {0, 1, 31, 255, 256, 257}) {
    std::vector<T> x(static_cast<std::size_t>(n)), expected(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = i % 3 == 0 ? T{0} : i % 3 == 1 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
      expected[i] = x[i] == 0 ? T{0} : T{1};
    }
    lockstep_test::OnDevice<T> const device(x);
    kernel::nonzero_mask<T>(stream.view(), device.view(n));
    CHECK(device.values() == expected);
  }
}
