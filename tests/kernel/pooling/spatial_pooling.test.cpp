// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/pooling/spatial_pooling.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include <lockstep/core/thread_pool.hpp>

#include "kernel/view.hpp"

using namespace lockstep;
using kernel::ConvolutionShape;
using kernel::PoolingShape;
using lockstep_test::view;
using Kernel = kernel::SpatialPooling<HostSpace>;

namespace {
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

struct Pooled {
  std::vector<double> y, dx;
  std::vector<std::int32_t> argmax;
};
Pooled largest(PoolingShape const& s, std::vector<double> const& x, double before, Write write) {
  ThreadPool pool(2);
  memory::Stream<HostSpace> const stream(pool);
  auto const size = static_cast<std::size_t>(s.rows * s.output_positions() * s.inputs);
  Pooled p{std::vector<double>(size, not_a_number), std::vector<double>(x.size(), before),
           std::vector<std::int32_t>(size, -1)};
  std::vector<double> dy;
  for (std::size_t i = 0; i < size; ++i) dy.push_back(static_cast<double>(i + 1));
  Kernel::max<double>(stream, s, view(x, x.size()), view(p.y, size), view(p.argmax, size));
  Kernel::max_backward<double>(stream, s, view(std::as_const(dy), size), view(std::as_const(p.argmax), size),
                               view(p.dx, x.size()), write);
  return p;
}
Pooled average(PoolingShape const& s, std::vector<double> const& x, double before, Write write,
               kernel::PoolingDivisor divisor = kernel::PoolingDivisor::padded) {
  ThreadPool pool(2);
  memory::Stream<HostSpace> const stream(pool);
  auto const size = static_cast<std::size_t>(s.rows * s.output_positions() * s.inputs);
  Pooled p{std::vector<double>(size, not_a_number), std::vector<double>(x.size(), before), {}};
  std::vector<double> dy;
  for (std::size_t i = 0; i < size; ++i) dy.push_back(static_cast<double>(i + 1));
  Kernel::average<double>(stream, s, view(x, x.size()), view(p.y, size), divisor);
  Kernel::average_backward<double>(stream, s, view(std::as_const(dy), size), view(p.dx, x.size()), write, divisor);
  return p;
}
Pooled window_means(PoolingShape const& s, std::vector<double> const& x, double before, Write write) {
  return average(s, x, before, write);
}
using Numbers = std::vector<double>;
}  // namespace

TEST_CASE("the maximum of each window: ties go to the first, padding never wins, overlaps add up") {
  // two channels over five positions: 3 1 4 4 2 and -1 -5 -9 -2 -6
  Numbers const x{3, -1, 1, -5, 4, -9, 4, -2, 2, -6};
  ConvolutionShape const s{
      .rows = 1, .inputs = 2, .extent = {1, 1, 5}, .kernel = {1, 1, 3}, .stride = {1, 1, 2}, .padding = {0, 0, 1}};
  auto const p = largest(s, x, not_a_number, Write::overwrite);
  CHECK(p.y == Numbers{3, -1, 4, -2, 4, -2});
  CHECK(p.argmax == std::vector<std::int32_t>{0, 0, 2, 3, 3, 3});
  CHECK(p.dx == Numbers{1, 2, 0, 0, 3, 0, 5, 4 + 6, 0, 0});
  CHECK(largest(s, x, 10, Write::add).dx == Numbers{11, 12, 10, 10, 13, 10, 15, 20, 10, 10});
}

TEST_CASE("windows in three dimensions, of several samples and channels, follow the definition") {
  ConvolutionShape const s{
      .rows = 2, .inputs = 3, .extent = {3, 4, 5}, .kernel = {2, 3, 2}, .stride = {1, 2, 3}, .padding = {1, 1, 0}};
  Index const positions = 3 * 4 * 5, out_positions = 4 * 2 * 2;
  REQUIRE(s.output_positions() == out_positions);
  Numbers x, expected_dx(2 * positions * 3), expected_mean_dx = expected_dx;
  for (int i = 0; i < 2 * positions * 3; ++i) x.push_back(i * 37 % 101);
  for (Index i = positions * 3 + 1; i < 2 * positions * 3; i += 3)  // the second sample's second channel
    x[static_cast<std::size_t>(i)] = -std::numeric_limits<double>::infinity();
  auto const p = largest(s, x, not_a_number, Write::overwrite), mean = average(s, x, not_a_number, Write::overwrite);
  for (Index i = 0; i < 2 * out_positions * 3; ++i) {
    CAPTURE(i);
    Index const row = i / (out_positions * 3), position = i / 3 % out_positions, channel = i % 3;
    std::vector<Index> window;  // positions of the sample
    for (Index d = position / 4 - 1; d < position / 4 + 1; ++d)
      for (Index h = position / 2 % 2 * 2 - 1; h < position / 2 % 2 * 2 + 2; ++h)
        for (Index w = position % 2 * 3; w < position % 2 * 3 + 2; ++w)
          if (d >= 0 && d < 3 && h >= 0 && h < 4) window.push_back((d * 4 + h) * 5 + w);
    auto const at = [&](Index from) { return static_cast<std::size_t>((row * positions + from) * 3 + channel); };
    Index won = window.front();
    double sum = 0;
    for (auto from : window) {
      if (x[at(from)] > x[at(won)]) won = from;
      sum += x[at(from)];
      expected_mean_dx[at(from)] += static_cast<double>(i + 1) / 12;
    }
    expected_dx[at(won)] += static_cast<double>(i + 1);
    CHECK(p.argmax[static_cast<std::size_t>(i)] == won);
    CHECK(p.y[static_cast<std::size_t>(i)] == x[at(won)]);
    CHECK(mean.y[static_cast<std::size_t>(i)] == sum / 12);
  }
  CHECK(p.dx == expected_dx);
  CHECK(mean.dx == expected_mean_dx);
}

TEST_CASE("NaN is propagated, and a window of only minus infinity has that value") {
  ConvolutionShape const s{.rows = 1, .inputs = 1, .extent = {1, 1, 4}, .kernel = {1, 1, 2}, .stride = {1, 1, 2}};
  auto const p =
      largest(s, {not_a_number, 7, -std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()},
              0, Write::overwrite);
  CHECK(p.argmax == std::vector<std::int32_t>{0, 2});
  CHECK(std::isnan(p.y[0]));
  CHECK(p.y[1] == -std::numeric_limits<double>::infinity());
  CHECK(std::isnan(largest(s, {7, not_a_number, 0, 0}, 0, Write::overwrite).y[0]));
}

TEST_CASE("two samples in three dimensions, position by position") {
  ConvolutionShape const s{.rows = 2, .inputs = 1, .extent = {2, 2, 2}, .kernel = {2, 1, 2}, .stride = {1, 1, 1}};
  Numbers x;
  for (int i = 0; i < 16; ++i) x.push_back(i);
  CHECK(largest(s, x, 0, Write::overwrite).y == Numbers{5, 7, 13, 15});
  auto const p = average(s, x, 1, Write::add);
  CHECK(p.y == Numbers{(0 + 1 + 4 + 5) / 4., (2 + 3 + 6 + 7) / 4., (8 + 9 + 12 + 13) / 4., (10 + 11 + 14 + 15) / 4.});
  CHECK(p.dx == Numbers{1.25, 1.25, 1.5, 1.5, 1.25, 1.25, 1.5, 1.5, 1.75, 1.75, 2, 2, 1.75, 1.75, 2, 2});
}

TEST_CASE("averages count the zeros of the padding by default, as in PyTorch") {
  ConvolutionShape const s{
      .rows = 1, .inputs = 1, .extent = {1, 1, 3}, .kernel = {1, 1, 2}, .stride = {1, 1, 2}, .padding = {0, 0, 1}};
  auto const p = average(s, {4, 6, 10}, not_a_number, Write::overwrite);  // avg_pool1d([[4, 6, 10]], 2, 2, padding=1)
  CHECK(p.y == Numbers{2, 8});
  CHECK(p.dx == Numbers{0.5, 1, 1});
}

TEST_CASE("averages divide by the positions within x, or within x and its padding, not by those behind") {
  // Windows of 3 over [0] 6 10 2 4 [0] with stride 2, and a last one at the second padding, of which one is not
  // counted.
  ConvolutionShape const s{.rows = 1,
                           .inputs = 1,
                           .extent = {1, 1, 4},
                           .kernel = {1, 1, 3},
                           .stride = {1, 1, 2},
                           .padding = {0, 0, 1},
                           .padding_after = {0, 0, 2}};
  auto const padded = average(s, {6, 10, 2, 4}, not_a_number, Write::overwrite);
  CHECK(padded.y == Numbers{16 / 3., 16 / 3., 4 / 2.});
  CHECK(padded.dx == Numbers{1 / 3., 1 / 3. + 2 / 3., 2 / 3., 2 / 3. + 3 / 2.});
  auto const elements = average(s, {6, 10, 2, 4}, 1, Write::add, kernel::PoolingDivisor::elements);
  CHECK(elements.y == Numbers{16 / 2., 16 / 3., 4 / 1.});
  CHECK(elements.dx == Numbers{1.5, 1 + 1 / 2. + 2 / 3., 1 + 2 / 3., 1 + 2 / 3. + 3});
}

TEST_CASE("adaptive windows begin and end at rounded fractions of the extent") {
  // Windows of 5 numbers: 3 windows have the positions 0 1, 1 2 3, 3 4, and 7 have 0, 0 1, 1 2, 2, 2 3, 3 4, 4.
  auto const windows = [](Index count) {
    PoolingShape s = ConvolutionShape{.rows = 1, .inputs = 1, .extent = {1, 1, 5}};
    s.set_adaptive(2, count);
    return s;
  };
  Numbers const x{4, 6, 10, 2, 8};
  auto const three = average(windows(3), x, not_a_number, Write::overwrite);
  CHECK(three.y == Numbers{5, 18 / 3., 5});
  CHECK(three.dx == Numbers{1 / 2., 1 / 2. + 2 / 3., 2 / 3., 2 / 3. + 3 / 2., 3 / 2.});
  auto const seven = largest(windows(7), x, 1, Write::add);
  CHECK(seven.y == Numbers{4, 6, 10, 10, 10, 8, 8});
  CHECK(seven.argmax == std::vector<std::int32_t>{0, 1, 2, 2, 2, 4, 4});
  CHECK(seven.dx == Numbers{1 + 1, 1 + 2, 1 + 3 + 4 + 5, 1, 1 + 6 + 7});
  CHECK(average(windows(5), x, 0, Write::overwrite).y == x);
  CHECK(average(windows(1), x, 0, Write::overwrite).y == Numbers{6});
}

TEST_CASE("adaptive windows of an empty input are refused") {
  PoolingShape s = ConvolutionShape{.rows = 1, .inputs = 1, .extent = {1, 1, 0}};
  s.set_adaptive(2, 3);
  CHECK_THROWS_WITH_AS(average(s, {}, 0, Write::overwrite),
                       "adaptive pooling: x has extent [1, 1, 0] and [1, 1, 3] windows; both must be at least 1",
                       ShapeError);
  s.rows = 0;
  CHECK(average(s, {}, 0, Write::overwrite).y.empty());
}

TEST_CASE("sizes that disagree are refused") {
  CHECK_THROWS_WITH_AS(
      largest(ConvolutionShape{.rows = 1, .inputs = 1, .extent = {1, 1, 0}, .kernel = {1, 1, 2}, .padding = {0, 0, 1}},
              {}, 0, Write::overwrite),
      doctest::Contains("the output must not be empty"),
      ShapeError);  // a window inside the padding
  for (auto const pool : {&largest, &window_means}) {
    CHECK_THROWS_WITH_AS(
        pool(
            ConvolutionShape{
                .rows = 1, .inputs = 1, .extent = {1, 1, 4}, .kernel = {1, 1, 2}, .padding_after = {0, 0, 2}},
            {1, 2, 3, 4}, 0, Write::overwrite),
        doctest::Contains("no window may begin after x"), ShapeError);
    CHECK_THROWS_WITH_AS(
        pool(ConvolutionShape{.rows = 1, .inputs = 1, .extent = {1, 1, 4}, .kernel = {1, 1, 2}, .dilation = {1, 1, 2}},
             {1, 2, 3, 4}, 0, Write::overwrite),
        "pooling: the window has dilation [1, 1, 2]; windows have adjacent positions", ShapeError);
  }
  ConvolutionShape const s{.rows = 1, .inputs = 1, .extent = {1, 1, 3}, .kernel = {1, 1, 2}};
  CHECK_THROWS_WITH_AS(average(s, {1, 2, 3, 4}, 0, Write::add),
                       "pooling: x and y have 4 and 2 elements; the shape needs 3 and 2", ShapeError);
}

TEST_CASE("the mean of many positions is as exact as the mean of a few") {
  ThreadPool pool(2);
  for (auto const& shape :
       {ConvolutionShape{.rows = 2, .inputs = 3, .extent = {64, 64, 64}, .kernel = {64, 64, 64}},
        ConvolutionShape{.rows = 1, .inputs = 20, .extent = {1, 1, 5000}, .kernel = {1, 1, 5000}}}) {
    std::vector<float> const x(static_cast<std::size_t>(shape.rows * shape.input_size()), 0.1f);
    std::vector<float> y(static_cast<std::size_t>(shape.rows * shape.inputs));
    Kernel::average<float>(memory::Stream<HostSpace>(pool), shape, view(x, x.size()), view(y, y.size()));
    for (float const each : y) CHECK(static_cast<double>(each) == doctest::Approx(0.1).epsilon(2e-5));
  }
}
