// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/reduction/dot_by_row.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include <lockstep/core/thread_pool.hpp>

#include "kernel/values.hpp"
#include "kernel/view.hpp"

using namespace lockstep;
using lockstep_test::values;
using lockstep_test::view;
using Kernel = kernel::DotByRow<HostSpace>;

TEST_CASE_TEMPLATE("each row is multiplied by the corresponding row of the other side", T, float, double) {
  for (Index rows : {0, 1, 65})
    for (Index width : {0, 1, 33, 200}) {
      auto const a = values<T>(rows * width, 1), b = values<T>(rows * width, 2), dz = values<T>(rows, 3);
      for (int threads : {1, 3}) {
        ThreadPool pool(threads);
        memory::Stream<HostSpace> const stream(pool);
        std::vector<T> z(static_cast<std::size_t>(rows), T{7});
        auto da = a, added = a;
        Kernel::forward<T>(stream, view(a, rows, width), view(b, rows, width), view(z, rows));
        Kernel::backward<T>(stream, view(dz, rows), view(b, rows, width), view(da, rows, width), Write::overwrite);
        Kernel::backward<T>(stream, view(dz, rows), view(b, rows, width), view(added, rows, width), Write::add);
        for (Index row = 0; row < rows; ++row) {
          double sum = 0;
          for (Index c = 0; c < width; ++c) {
            auto const at = static_cast<std::size_t>(row * width + c);
            sum += static_cast<double>(a[at]) * static_cast<double>(b[at]);
            CHECK(da[at] == dz[static_cast<std::size_t>(row)] * b[at]);
            CHECK(added[at] == doctest::Approx(a[at] + da[at]));
          }
          CHECK(std::abs(static_cast<double>(z[static_cast<std::size_t>(row)]) - sum) <=
                static_cast<double>(width + 1) * static_cast<double>(width) *
                    static_cast<double>(std::numeric_limits<T>::epsilon()));
        }
      }
    }
}
