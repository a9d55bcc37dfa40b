// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/normalization/log_softmax.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <lockstep/core/thread_pool.hpp>

#include "kernel/values.hpp"
#include "kernel/view.hpp"

using namespace lockstep;
using lockstep_test::values;
using lockstep_test::view;
using Kernel = kernel::LogSoftmax<HostSpace>;

TEST_CASE_TEMPLATE("log probabilities are exact for numbers of any size", T, float, double) {
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
            double total = 0, dy_total = 0, dy_size = 0;
            for (Index c = 0; c < width; ++c) {
              total += std::exp(static_cast<double>(x[at(c)]) - static_cast<double>(offset));
              dy_total += static_cast<double>(dy[at(c)]), dy_size += std::abs(static_cast<double>(dy[at(c)]));
            }
            for (Index c = 0; c < width; ++c) {
              double const log_share = static_cast<double>(x[at(c)]) - static_cast<double>(offset) - std::log(total);
              double const slope = static_cast<double>(dy[at(c)]) - std::exp(log_share) * dy_total;
              off = std::max({off, std::abs(static_cast<double>(y[at(c)]) - log_share) / (4 + std::abs(log_share)),
                              std::abs(static_cast<double>(dx[at(c)]) - slope) / (2 + dy_size),
                              std::abs(static_cast<double>(added[at(c)]) - static_cast<double>(before[at(c)]) - slope) /
                                  (3 + dy_size)});
            }
          }
          CHECK(off <= 40 * unit);  // sums of 200 numbers, the exponential and the logarithm, each rounded
        }
      }
}

TEST_CASE_TEMPLATE("log probabilities are finite where probabilities underflow", T, float, double) {
  ThreadPool pool(1);
  memory::Stream<HostSpace> const stream(pool);
  std::vector<T> const x{T(-2000), T(0)}, dy{T(1), T(0)};
  std::vector<T> y(2), dx(2);
  Kernel::forward<T>(stream, view(x, 1, 2), view(y, 1, 2));
  CHECK(y == std::vector<T>{T(-2000), T(0)});
  Kernel::backward<T>(stream, view(dy, 1, 2), view(std::as_const(y), 1, 2), view(dx, 1, 2), Write::overwrite);
  CHECK(dx == std::vector<T>{T(1), T(-1)});
}

TEST_CASE_TEMPLATE("a logit of minus infinity has probability zero and no effect on the others", T, float, double) {
  ThreadPool pool(1);
  memory::Stream<HostSpace> const stream(pool);
  std::vector<T> const x{T(3), -std::numeric_limits<T>::infinity()}, dy{T(1), T(0)};
  std::vector<T> y(2), dx(2);
  Kernel::forward<T>(stream, view(x, 1, 2), view(y, 1, 2));
  CHECK(y == std::vector<T>{T(0), -std::numeric_limits<T>::infinity()});
  Kernel::backward<T>(stream, view(dy, 1, 2), view(std::as_const(y), 1, 2), view(dx, 1, 2), Write::overwrite);
  CHECK(dx == std::vector<T>{T(0), T(0)});
}
