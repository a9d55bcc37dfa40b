// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/normalization/l2_normalize.cuh>

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

TEST_CASE_TEMPLATE("normalized rows and their gradient on CUDA equal the host's, except for the order of sums", T,
                   float, double) {
  if (!lockstep_test::has_gpu("kernel::L2Normalize<CudaSpace>")) return;
  ThreadPool pool(1);
  memory::Stream<HostSpace> const host(pool);
  memory::CudaStream const stream;
  double const unit = static_cast<double>(std::numeric_limits<T>::epsilon());
  for (Index rows : {0, 1, 31, 65})
    for (Index width : {1, 33, 200})
      for (T epsilon : {T(1e-12), T(4)}) {  // some of the rows of 33 are longer
        auto const x = values<T>(rows * width, 1), dy = values<T>(rows * width, 2);
        auto y = x, dx = values<T>(rows * width, 3);
        std::vector<T> reciprocals(static_cast<std::size_t>(rows));
        OnDevice<T> const device_x(x), device_dy(dy), device_y(x), device_dx(dx), device_reciprocals(reciprocals);
        kernel::L2Normalize<HostSpace>::forward<T>(host, view(x, rows, width), epsilon, view(reciprocals, rows),
                                                   view(y, rows, width));
        kernel::L2Normalize<CudaSpace>::forward<T>(stream.view(), device_x.view(rows, width), epsilon,
                                                   device_reciprocals.view(rows), device_y.view(rows, width));
        // Sums of 200 terms, each of which rounds some 10 times on either, in different orders; their factors are at
        // most `largest`.
        double largest = 1;
        for (T r : reciprocals) largest = std::max(largest, static_cast<double>(r));
        auto const near = [&](std::vector<T> const& a, std::vector<T> const& b, double scale) {
          bool good = true;
          for (std::size_t i = 0; i < a.size(); ++i)
            good = good && std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])) <= 40 * unit * scale;
          return good;
        };
        CHECK(near(device_y.values(), y, 1));
        CHECK(near(device_reciprocals.values(), reciprocals, largest));
        for (auto write : {Write::add, Write::overwrite}) {
          kernel::L2Normalize<HostSpace>::backward<T>(host, view(dy, rows, width), view(x, rows, width), epsilon,
                                                      view(reciprocals, rows), view(dx, rows, width), write);
          kernel::L2Normalize<CudaSpace>::backward<T>(
              stream.view(), device_dy.view(rows, width), device_x.view(rows, width), epsilon,
              device_reciprocals.view(rows), device_dx.view(rows, width), write);
          CHECK(near(device_dx.values(), dx, 2 * largest));
        }
      }
}
