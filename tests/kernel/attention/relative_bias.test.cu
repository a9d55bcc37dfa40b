// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/attention/relative_bias.cuh>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "kernel/values.hpp"
#include "kernel/view.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::values;
using lockstep_test::view;

TEST_CASE_TEMPLATE("the relative bias on CUDA equals the host's", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::RelativeBias<CudaSpace>")) return;
  ThreadPool pool(1);
  memory::Stream<HostSpace> const host(pool);
  memory::CudaStream const stream;
  for (bool causal : {false, true})
    for (Index length : {1, 2, 33, 150})
      for (auto write : {Write::overwrite, Write::add}) {
        kernel::RelativeBuckets const buckets{16, 64, causal};
        Index const heads = 3, distances = 2 * length - 1, first = 1 - length;
        auto const table = values<T>(buckets.count * heads, 1), dbias = values<T>(heads * distances, 2);
        std::vector<T> bias(dbias.size());
        auto dtable = values<T>(buckets.count * heads, 3);
        OnDevice<T> const device_table(table), device_dbias(dbias), device_bias(bias), device_dtable(dtable);
        kernel::RelativeBias<HostSpace>::forward<T>(host, buckets, first, view(table, buckets.count, heads),
                                                    view(bias, heads, distances));
        kernel::RelativeBias<CudaSpace>::forward<T>(
            stream.view(), buckets, first, device_table.view(buckets.count, heads), device_bias.view(heads, distances));
        CHECK(device_bias.values() == bias);
        kernel::RelativeBias<HostSpace>::backward<T>(host, buckets, first, view(dbias, heads, distances),
                                                     view(dtable, buckets.count, heads), write);
        kernel::RelativeBias<CudaSpace>::backward<T>(stream.view(), buckets, first, device_dbias.view(heads, distances),
                                                     device_dtable.view(buckets.count, heads), write);
        auto const got = device_dtable.values();
        // If runs of a bucket are separate, the host adds them to the table one by one.
        for (std::size_t i = 0; i < got.size(); ++i)
          CHECK(std::abs(static_cast<double>(got[i]) - static_cast<double>(dtable[i])) <=
                static_cast<double>(distances + 1) * static_cast<double>(std::numeric_limits<T>::epsilon()));
      }
}
