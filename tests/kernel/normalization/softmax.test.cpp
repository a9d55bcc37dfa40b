// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/normalization/softmax.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include <lockstep/core/thread_pool.hpp>

#include "kernel/values.hpp"
#include "kernel/view.hpp"

using namespace lockstep;
using lockstep_test::values;
using lockstep_test::view;
using Kernel = kernel::Softmax<HostSpace>;

TEST_CASE_TEMPLATE("shares of exponentials are exact for numbers of any size", T, float, double) {
  double const unit = static_cast<double>(std::numeric_limits<T>::epsilon());
  for (Index rows : {0, 1, 65})
    for (Index width : {1, 7, 33, 200})
      for (T offset : {T(0), T(80), T(-3000)}) {
        auto x = values<T>(rows * width, 1, 3);
        for (auto& each : x) each += offset;
        auto const dy = values<T>(rows * width, 2);
        for (int threads : {1, 3}) {
          ThreadPool pool(threads);
          memory::Stream<HostSpace> const stream(pool);
          auto y = x, dx = dy, added = values<T>(rows * width, 3);
          auto const before = added;
          Kernel::forward<T>(stream, view(x, rows, width), view(y, rows, width));
          Kernel::backward<T>(stream, view(dy, rows, width), view(std::as_const(y), rows, width), view(dx, rows, width),
                              Write::overwrite);
          Kernel::backward<T>(stream, view(dy, rows, width), view(std::as_const(y), rows, width),
                              view(added, rows, width), Write::add);
          double off = 0;
          for (Index row = 0; row < rows; ++row) {
            auto const at = [&](Index c) { return static_cast<std::size_t>(row * width + c); };
            double total = 0, mean = 0;
            for (Index c = 0; c < width; ++c)
              total += std::exp(static_cast<double>(x[at(c)]) - static_cast<double>(offset));
            auto const share = [&](Index c) {
              return std::exp(static_cast<double>(x[at(c)]) - static_cast<double>(offset)) / total;
            };
            for (Index c = 0; c < width; ++c) mean += share(c) * static_cast<double>(dy[at(c)]);
            for (Index c = 0; c < width; ++c) {
              double const slope = share(c) * (static_cast<double>(dy[at(c)]) - mean);
              off = std::max(
                  {off, std::abs(static_cast<double>(y[at(c)]) - share(c)),
                   std::abs(static_cast<double>(dx[at(c)]) - slope) / 2,
                   std::abs(static_cast<double>(added[at(c)]) - static_cast<double>(before[at(c)]) - slope) / 3});
            }
          }
          CHECK(off <= 40 * unit);  // sums of 200 shares, the exponential and the division, each rounded
        }
      }
}
