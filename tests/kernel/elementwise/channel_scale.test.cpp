// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/elementwise/channel_scale.hpp>

#include <doctest/doctest.h>

#include <lockstep/core/thread_pool.hpp>

#include "kernel/values.hpp"
#include "kernel/view.hpp"

using namespace lockstep;
using lockstep_test::same_sums;
using lockstep_test::values;
using lockstep_test::view;
using Kernel = kernel::ChannelScale<HostSpace>;

TEST_CASE_TEMPLATE("rows are multiplied by the factors of their channels, in place and added", T, float, double) {
  for (Index rows : {0, 1, 33, 700})
    for (Index channels : {1, 7, 31, 32, 33}) {
      auto const x = values<T>(rows * channels, 1), factors = values<T>(channels, 2),
                 before = values<T>(rows * channels, 3);
      for (int threads : {1, 3}) {
        ThreadPool pool(threads);
        memory::Stream<HostSpace> const stream(pool);
        auto y = x, sum = before;
        Kernel::run<T>(stream, view(factors, channels), view(y, rows, channels), view(y, rows, channels),
                       Write::overwrite);
        Kernel::run<T>(stream, view(factors, channels), view(x, rows, channels), view(sum, rows, channels), Write::add);
        Index wrong = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
          T const here = x[i] * factors[i % factors.size()];
          wrong += y[i] != here || sum[i] != before[i] + here;
        }
        CHECK(wrong == 0);
      }
    }
}

TEST_CASE_TEMPLATE("the gradient of the factors is a sum over rows, with equal bits for any number of threads", T,
                   float, double) {
  for (Index rows : {0, 1, 127, 128, 129, 9000})
    for (Index channels : {1, 7, 33}) {
      auto const x = values<T>(rows * channels, 1), dy = values<T>(rows * channels, 2), start = values<T>(channels, 3);
      std::vector<T> sums(static_cast<std::size_t>(channels)), first;
      for (std::size_t i = 0; i < x.size(); ++i) sums[i % sums.size()] += dy[i] * x[i];
      for (int threads : {1, 3}) {
        ThreadPool pool(threads);
        memory::Stream<HostSpace> const stream(pool);
        auto gradient = start, added = start;
        std::vector<T> partial(static_cast<std::size_t>(Kernel::partial_elements(rows, channels)), T{7});
        auto const backward = [&](std::vector<T>& to, Write write) {
          Kernel::factors_backward<T>(stream, view(dy, rows, channels), view(x, rows, channels), view(to, channels),
                                      write, partial.data());
        };
        backward(gradient, Write::overwrite);
        backward(added, Write::add);
        CHECK(same_sums(gradient, sums, static_cast<double>(rows + 1)));
        for (std::size_t c = 0; c < start.size(); ++c) CHECK(added[c] == start[c] + gradient[c]);
        if (threads == 1) first = gradient;
        CHECK(gradient == first);
      }
    }
}
