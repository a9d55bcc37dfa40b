// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/elementwise/channel_bias.hpp>

#include <doctest/doctest.h>

#include <lockstep/core/thread_pool.hpp>

#include "kernel/values.hpp"
#include "kernel/view.hpp"

using namespace lockstep;
using lockstep_test::same_sums;
using lockstep_test::values;
using lockstep_test::view;

TEST_CASE_TEMPLATE("a bias is added to every row, and its gradient is their sum", T, float, double) {
  using Kernel = kernel::ChannelBias<HostSpace>;
  for (Index rows : {0, 1, 511, 1025})
    for (Index channels : {1, 7, 33}) {
      auto const bias = values<T>(channels, 1), dy = values<T>(rows * channels, 2), start = values<T>(channels, 3);
      auto const y = values<T>(rows * channels, 4);
      auto expected = y;
      std::vector<T> sums(static_cast<std::size_t>(channels)), first;
      for (std::size_t i = 0; i < y.size(); ++i) {
        expected[i] += bias[i % bias.size()];
        sums[i % bias.size()] += dy[i];
      }
      for (int threads : {1, 3}) {
        ThreadPool pool(threads);
        memory::Stream<HostSpace> const stream(pool);
        auto got = y, dbias = start, added = start;
        Kernel::forward<T>(stream, view(bias, channels), view(got, rows, channels));
        CHECK(got == expected);
        std::vector<T> partial(static_cast<std::size_t>(Kernel::partial_elements(rows, channels)));
        Kernel::backward<T>(stream, view(dy, rows, channels), view(dbias, channels), Write::overwrite, partial.data());
        Kernel::backward<T>(stream, view(dy, rows, channels), view(added, channels), Write::add, partial.data());
        CHECK(same_sums(dbias, sums, static_cast<double>(rows + 1)));
        for (std::size_t c = 0; c < start.size(); ++c) CHECK(added[c] == doctest::Approx(start[c] + dbias[c]));
        if (threads == 1) first = dbias;
        CHECK(dbias == first);
      }
    }
}
