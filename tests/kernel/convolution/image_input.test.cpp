// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/convolution/image_input.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include <lockstep/core/thread_pool.hpp>

#include "kernel/view.hpp"
#include "larger_error.hpp"

using namespace lockstep;
using lockstep_test::view;
using Kernel = kernel::ImageInput<HostSpace>;

TEST_CASE_TEMPLATE("every byte in every channel, for any number of channels and positions", T, float, double) {
  for (Index channels : {1, 2, 3, 4, 17, 255, 256, 300}) {
    for (Index positions : {0, 1, 31, 33, 300, 20000 / static_cast<int>(channels)}) {
      std::vector<std::uint8_t> x(static_cast<std::size_t>(positions * channels));
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
      std::vector<double> mean, deviation;
      for (Index c = 0; c < channels; ++c) {
        mean.push_back(0.01 * static_cast<double>(c % 90));
        deviation.push_back(0.2 + 0.01 * static_cast<double>(c % 50));
      }
      std::vector<T> y(x.size()), table(static_cast<std::size_t>(Kernel::table_elements(channels))), again(x.size());
      for (int threads : {1, 3}) {
        ThreadPool pool(threads);
        Kernel::normalize<T>(memory::Stream<HostSpace>(pool), view(std::as_const(x), positions, channels), mean,
                             deviation, view(threads == 1 ? y : again, positions, channels), table.data());
      }
      CHECK(y == again);
      double worst = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        auto const c = i % static_cast<std::size_t>(channels);
        double const expected = (x[i] / 255.0 - mean[c]) / deviation[c];
        // Four roundings, of two constants, a difference and a product, each relative to terms of at most 1 /
        // deviation.
        double const bound = 4 * static_cast<double>(std::numeric_limits<T>::epsilon()) / deviation[c];
        worst = lockstep_test::larger_error(worst, std::abs(static_cast<double>(y[i]) - expected) / bound);
      }
      CHECK(worst <= 1);
    }
  }
}
