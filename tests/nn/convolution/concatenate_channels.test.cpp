// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/convolution/concatenate_channels.hpp>

#include <doctest/doctest.h>

#include <lockstep/nn/linear/linear.hpp>

#include "nn/layer_check.hpp"

using namespace layer_check;

namespace {
/// Three parts of different widths, one of them twice, so its gradient is a sum.
auto const joined = [](auto& context, nn::Linear const& layer, auto const& x) {
  return nn::concatenate_channels(context, x, layer.forward(context, x), x);
};
}  // namespace

TEST_CASE("concatenate_channels: gradients of all parts") {
  for (Index rows : {1, 4}) {
    auto const result = check(nn::Linear(7, 3), 7, {.rows = rows, .length = 9}, joined);
    CAPTURE(result.where);
    CHECK(result.ok());
  }
}

TEST_CASE("concatenate_channels: rows are concatenated, and need no gradient") {
  lockstep::ThreadPool pool(1);
  nn::Context<float, HostSpace> context{lockstep::memory::Stream<HostSpace>(pool)};
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 1);
  auto const x = context.variable<2>({2, 1}), y = context.variable<2>({2, 2});
  for (Index i = 0; i < 2; ++i) x.value.data[i] = static_cast<float>(i);
  for (Index i = 0; i < 4; ++i) y.value.data[i] = static_cast<float>(10 + i);
  auto const z = nn::concatenate_channels(context, x, y);
  CHECK(z.value.extent == lockstep::Extents<2>{2, 3});
  CHECK(std::vector<float>(z.value.data, z.value.data + 6) == std::vector<float>{0, 10, 11, 1, 12, 13});
  Batch const batch{.rows = 2};
  nn::Sequence<float, HostSpace> const first{x, batch.layout()}, second{y, batch.layout()};
  auto const tokens = nn::concatenate_channels(context, first, second).tokens.value;
  CHECK(std::equal(z.value.data, z.value.data + 6, tokens.data));
}

TEST_CASE("concatenate_channels: another number of rows is refused") {
  lockstep::ThreadPool pool(1);
  nn::Context<float, HostSpace> context{lockstep::memory::Stream<HostSpace>(pool)};
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 1);
  auto const x = context.variable<2>({2, 1}), y = context.variable<2>({3, 2});
  CHECK_THROWS_WITH_AS(
      static_cast<void>(nn::concatenate_channels(context, x, y)),
      "concatenate_channels: the first part is [2, 1] and another [3, 2]; all extents except the last must be equal",
      lockstep::ShapeError);
}
