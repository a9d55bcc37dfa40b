// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/reduction/sum_buffers.cuh>

#include <doctest/doctest.h>

#include <cmath>

#include "kernel/values.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;

TEST_CASE_TEMPLATE("several arrays are summed with the host's bits, and all but the first are unchanged", T, float,
                   double) {
  if (!lockstep_test::has_gpu("kernel::sum_buffers")) return;
  memory::CudaStream const stream;
  for (int count : {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 33})
    for (Index n : {0, 1, 31, 32, 33, 257}) {
      CAPTURE(count);
      CAPTURE(n);
      std::vector<std::vector<T>> host;
      std::vector<OnDevice<T>> device;
      std::vector<T*> on_host, on_device;
      for (int k = 0; k < count; ++k) {  // different magnitudes, so that another order has other bits
        host.push_back(lockstep_test::values<T>(n, static_cast<std::uint64_t>(k + 1), std::ldexp(1.0f, k % 5)));
        device.emplace_back(host.back());
      }
      auto const before = host;
      for (auto& h : host) on_host.push_back(h.data());
      for (auto& d : device) on_device.push_back(d.view(n).data);
      tree_sum_into_first<T>(on_host, 0, n);
      kernel::sum_buffers<T>(stream.view(), on_device, n);
      CHECK(device[0].values() == host[0]);
      for (std::size_t k = 1; k < device.size(); ++k)
        if (count <= 16) CHECK(device[k].values() == before[k]);
    }
}
