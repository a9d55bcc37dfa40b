// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/convolution/pad.hpp>

#include <doctest/doctest.h>

#include <array>

#include <lockstep/core/thread_pool.hpp>

#include "kernel/convolution/resampling_cases.hpp"
#include "kernel/values.hpp"
#include "kernel/view.hpp"

using namespace lockstep;
using kernel::PadMode;
using kernel::PadShape;
using lockstep_test::values;
using lockstep_test::view;

TEST_CASE("each mode of padding continues an axis by its rule") {
  auto const sources = [](PadMode mode) {
    PadShape const s{.rows = 1, .extent = {1, 1, 4}, .before = {0, 0, 2}, .after = {0, 0, 3}, .mode = mode};
    std::array<Index, 9> out{};
    for (Index i = 0; i < s.result(2); ++i) out[static_cast<std::size_t>(i)] = s.source(2, i);
    return out;
  };
  CHECK(sources(PadMode::circular) == std::array<Index, 9>{2, 3, 0, 1, 2, 3, 0, 1, 2});
  CHECK(sources(PadMode::reflect) == std::array<Index, 9>{2, 1, 0, 1, 2, 3, 2, 1, 0});
  CHECK(sources(PadMode::replicate) == std::array<Index, 9>{0, 0, 0, 1, 2, 3, 3, 3, 3});
  CHECK(sources(PadMode::zero) == std::array<Index, 9>{-1, -1, 0, 1, 2, 3, -1, -1, -1});
}

TEST_CASE_TEMPLATE("padding copies values, whose gradients are summed", T, float, double) {
  using Kernel = kernel::Pad<HostSpace>;
  for (PadShape const& s : resampling_cases::pad_shapes()) {
    auto const in = s.rows * s.input_size(), out = s.rows * s.output_size();
    auto const x = values<T>(in, 1), dy = values<T>(out, 2), start = values<T>(in, 3);
    auto const [expected, sums] =
        resampling_cases::copies(s, x, dy, [&](std::size_t axis, Index at) { return s.source(axis, at); });
    std::vector<T> first;
    for (int threads : {1, 3}) {
      ThreadPool pool(threads);
      memory::Stream<HostSpace> const stream(pool);
      std::vector<T> y(expected.size(), T(-1));
      auto dx = start, added = start;
      Kernel::forward<T>(stream, s, view(x, in), view(y, out));
      Kernel::backward<T>(stream, s, view(dy, out), view(dx, in), Write::overwrite);
      Kernel::backward<T>(stream, s, view(dy, out), view(added, in), Write::add);
      CHECK(y == expected);
      for (std::size_t k = 0; k < dx.size(); ++k) {
        CHECK(dx[k] == doctest::Approx(sums[k]).epsilon(1e-5));
        CHECK(added[k] == doctest::Approx(start[k] + sums[k]).epsilon(1e-5));
      }
      if (threads == 1) first = dx;
      CHECK(dx == first);
    }
  }
}

TEST_CASE("padding beyond the values of an axis is refused") {
  ThreadPool pool(1);
  auto const pad = [&](PadMode mode, Index extent, Index after) {
    PadShape const s{.rows = 1, .extent = {1, 1, extent}, .after = {0, 0, after}, .mode = mode};
    std::vector<float> const x(static_cast<std::size_t>(s.input_size()));
    std::vector<float> y(static_cast<std::size_t>(s.output_size()));
    kernel::Pad<HostSpace>::forward<float>(memory::Stream<HostSpace>(pool), s, view(x, x.size()), view(y, y.size()));
  };
  CHECK_NOTHROW(pad(PadMode::circular, 3, 3));
  CHECK_NOTHROW(pad(PadMode::reflect, 3, 2));
  CHECK_NOTHROW(pad(PadMode::replicate, 1, 9));
  CHECK_NOTHROW(pad(PadMode::zero, 0, 9));
  CHECK_THROWS_WITH_AS(pad(PadMode::circular, 3, 4),
                       "Pad: x has extent [1, 1, 3] and gets padding [0, 0, 0] before and [0, 0, 4] after; circular "
                       "padding must be at most the extent of its axis",
                       ShapeError);
  CHECK_THROWS_WITH_AS(pad(PadMode::reflect, 3, 3),
                       doctest::Contains("reflected padding must be less than the extent of its axis"), ShapeError);
  CHECK_THROWS_WITH_AS(pad(PadMode::replicate, 0, 1),
                       doctest::Contains("an axis without positions has no value to replicate"), ShapeError);
}
