// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/reduction/sum.cuh>

#include <doctest/doctest.h>

#include <cstddef>
#include <numeric>
#include <vector>

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

TEST_CASE("two vectors are summed on CUDA in one launch, with the bits of single sums") {
  if (!lockstep_test::has_gpu("kernel::Sum<CudaSpace>")) return;
  memory::CudaStream const stream;
  auto const sum = [&](OnDevice<double> const& x, Index n) {
    OnDevice<double> const total(std::vector<double>{-1});
    kernel::Sum<CudaSpace>::run(stream.view(), x.view(n), total.view(1).data);
    return total.values()[0];
  };
  for (Index n : {0, 3, 4096, 4097, 9000}) {
    Index const m = n / 2 + 1;
    std::vector<double> x(static_cast<std::size_t>(n)), y(static_cast<std::size_t>(m));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1 / static_cast<double>(i + 1);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = -1 / static_cast<double>(3 * i + 1);
    OnDevice<double> const on_device(x), other(y), totals(std::vector<double>{-1, -1});
    auto const kernels = stream.view().queued().kernels;
    kernel::Sum<CudaSpace>::run_both(stream.view(), on_device.view(n), other.view(m), totals.view(2).data);
    CHECK(stream.view().queued().kernels == kernels + 1);
    CHECK(totals.values() == std::vector<double>{sum(on_device, n), sum(other, m)});
  }
}
