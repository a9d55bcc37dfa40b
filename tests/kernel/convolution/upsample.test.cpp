// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/convolution/upsample.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <lockstep/core/thread_pool.hpp>

#include "kernel/convolution/resampling_cases.hpp"
#include "kernel/values.hpp"
#include "kernel/view.hpp"

using namespace lockstep;
using lockstep_test::values;
using lockstep_test::view;

TEST_CASE_TEMPLATE("positions become blocks, whose gradients are summed", T, float, double) {
  using Kernel = kernel::Upsample<HostSpace>;
  for (kernel::UpsampleShape const& s : resampling_cases::upsample_shapes()) {
    auto const in = s.rows * s.input_size(), out = s.rows * s.output_size();
    auto const x = values<T>(in, 1), dy = values<T>(out, 2), start = values<T>(in, 3);
    auto const [expected, sums] =
        resampling_cases::copies(s, x, dy, [&](std::size_t axis, Index at) { return at / s.factor[axis]; });
    for (int threads : {1, 3}) {
      ThreadPool pool(threads);
      memory::Stream<HostSpace> const stream(pool);
      std::vector<T> y(expected.size());
      auto dx = start, added = start;
      Kernel::forward<T>(stream, s, view(x, in), view(y, out));
      Kernel::backward<T>(stream, s, view(dy, out), view(dx, in), Write::overwrite);
      Kernel::backward<T>(stream, s, view(dy, out), view(added, in), Write::add);
      CHECK(y == expected);
      CHECK(dx == sums);
      for (std::size_t k = 0; k < dx.size(); ++k) CHECK(added[k] == doctest::Approx(start[k] + sums[k]));
    }
  }
}

TEST_CASE("linear upsampling interpolates between centers, and is constant beyond the outer ones") {
  using Kernel = kernel::Upsample<HostSpace>;
  ThreadPool pool(1);
  auto const upsampled = [&](Index factor, std::vector<double> const& x, bool aligned = false) {
    kernel::UpsampleShape const s{
        .rows = 1, .extent = {1, 1, static_cast<Index>(x.size())}, .factor = {1, 1, factor}, .aligned = aligned};
    std::vector<double> y(static_cast<std::size_t>(s.output_size()));
    Kernel::linear<double>(memory::Stream<HostSpace>(pool), s, view(x, x.size()), view(y, y.size()));
    return y;
  };
  CHECK(upsampled(1, {4, 8, 2}) == std::vector<double>{4, 8, 2});
  CHECK(upsampled(2, {4, 8}) == std::vector<double>{4, 5, 7, 8});
  CHECK(upsampled(4, {0, 8}) == std::vector<double>{0, 0, 1, 3, 5, 7, 8, 8});
  CHECK(upsampled(3, {7}) == std::vector<double>{7, 7, 7});
  CHECK(upsampled(1, {4, 8, 2}, true) == std::vector<double>{4, 8, 2});
  CHECK(upsampled(3, {0, 10}, true) == std::vector<double>{0, 2, 4, 6, 8, 10});
  CHECK(upsampled(3, {0, 8, 0}, true) == std::vector<double>{0, 2, 4, 6, 8, 6, 4, 2, 0});
  CHECK(upsampled(3, {7}, true) == std::vector<double>{7, 7, 7});
  CHECK(upsampled(1, {7}, true) == std::vector<double>{7});
}

TEST_CASE_TEMPLATE("linear upsampling is the product of its axes, and its gradient the adjoint", T, float, double) {
  using Kernel = kernel::Upsample<HostSpace>;
  for (kernel::UpsampleShape const& s : resampling_cases::linear_shapes()) {
    auto const in = s.rows * s.input_size(), out = s.rows * s.output_size();
    auto const x = values<T>(in, 1), dy = values<T>(out, 2), start = values<T>(in, 3);
    std::vector<double> expected(static_cast<std::size_t>(out)), sums(static_cast<std::size_t>(in));
    auto const share = [&s](std::size_t axis, Index o, Index i) {  // of the value at i, from PyTorch's formula
      auto const most = static_cast<double>(s.extent[axis] - 1), factor = static_cast<double>(s.factor[axis]);
      auto const last = most * factor + factor - 1;  // position of y
      auto const place = s.aligned ? (last > 0 ? static_cast<double>(o) * most / last : 0.0)
                                   : std::clamp((static_cast<double>(o) + 0.5) / factor - 0.5, 0.0, most);
      return std::max(0.0, 1 - std::abs(place - static_cast<double>(i)));
    };
    auto const from = s.extent, to = s.result();
    for (Index o = 0; o < out; ++o) {
      auto const at = o / s.channels, row = at / elements(to);
      for (Index i = o % s.channels; i < s.input_size(); i += s.channels) {
        auto const position = i / s.channels;
        double const weight = share(2, at % to[2], position % from[2]) *
                              share(1, at / to[2] % to[1], position / from[2] % from[1]) *
                              share(0, at / to[2] / to[1] % to[0], position / from[2] / from[1]);
        expected[static_cast<std::size_t>(o)] +=
            weight * static_cast<double>(x[static_cast<std::size_t>(row * s.input_size() + i)]);
        sums[static_cast<std::size_t>(row * s.input_size() + i)] +=
            weight * static_cast<double>(dy[static_cast<std::size_t>(o)]);
      }
    }
    // Weights, products and sums of at most 8 values, or 6 * 2 * 4 gradients, within [-1, 1] round at most once each.
    double const bound = 3 * 48 * static_cast<double>(std::numeric_limits<T>::epsilon());
    std::vector<T> first;
    for (int threads : {1, 3}) {
      ThreadPool pool(threads);
      memory::Stream<HostSpace> const stream(pool);
      std::vector<T> y(expected.size());
      auto dx = start, added = start;
      Kernel::linear<T>(stream, s, view(x, in), view(y, out));
      Kernel::linear_backward<T>(stream, s, view(dy, out), view(dx, in), Write::overwrite);
      Kernel::linear_backward<T>(stream, s, view(dy, out), view(added, in), Write::add);
      for (std::size_t k = 0; k < y.size(); ++k) CHECK(std::abs(static_cast<double>(y[k]) - expected[k]) <= bound);
      for (std::size_t k = 0; k < dx.size(); ++k) {
        CHECK(std::abs(static_cast<double>(dx[k]) - sums[k]) <= bound);
        CHECK(std::abs(static_cast<double>(added[k]) - static_cast<double>(start[k]) - sums[k]) <= bound);
      }
      if (threads == 1) first = dx;
      CHECK(dx == first);
    }
  }
}
