// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/convolution/slice_channels.hpp>

#include <doctest/doctest.h>

#include <lockstep/nn/elementwise/add.hpp>
#include <lockstep/nn/elementwise/multiply.hpp>
#include <lockstep/nn/elementwise/sigmoid.hpp>
#include <lockstep/nn/linear/linear.hpp>

#include "nn/layer_check.hpp"

using namespace layer_check;

namespace {
/// A gate and its input, from one Linear; one column in between is unused, and one is read twice.
auto const gated = [](auto& context, nn::Linear const& layer, auto const& x) {
  auto const both = layer.forward(context, x);
  auto const gate = nn::sigmoid(context, nn::slice_channels(context, both, 0, 3));
  return nn::multiply(
      context, gate,
      nn::add(context, nn::slice_channels(context, both, 4, 3), nn::slice_channels(context, both, 5, 3)));
};
}  // namespace

TEST_CASE("slice_channels: gradients of columns in one, two and no slices") {
  for (Index rows : {1, 4}) {
    auto const result = check(nn::Linear(7, 8), 7, {.rows = rows, .length = 9}, gated);
    CAPTURE(result.where);
    CHECK(result.ok());
  }
}

TEST_CASE("slice_channels: columns of rows and tokens, and empty slices") {
  lockstep::ThreadPool pool(1);
  nn::Context<float, HostSpace> context{lockstep::memory::Stream<HostSpace>(pool)};
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 1);
  auto const x = context.variable<2>({2, 3});
  for (Index i = 0; i < 6; ++i) x.value.data[i] = static_cast<float>(i);
  auto const y = nn::slice_channels(context, x, 1, 2);
  CHECK(y.value.extent == lockstep::Extents<2>{2, 2});
  CHECK(std::vector<float>(y.value.data, y.value.data + 4) == std::vector<float>{1, 2, 4, 5});
  CHECK(nn::slice_channels(context, x, 3, 0).value.extent == lockstep::Extents<2>{2, 0});
  Batch const batch{.rows = 2};
  auto const tokens = nn::slice_channels(context, nn::Sequence<float, HostSpace>{x, batch.layout()}, 2, 1).tokens.value;
  CHECK(std::vector<float>(tokens.data, tokens.data + 2) == std::vector<float>{2, 5});
}

TEST_CASE("slice_channels: missing columns are refused") {
  lockstep::ThreadPool pool(1);
  nn::Context<float, HostSpace> context{lockstep::memory::Stream<HostSpace>(pool)};
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 1);
  auto const x = context.variable<2>({2, 3});
  CHECK_THROWS_WITH_AS(static_cast<void>(nn::slice_channels(context, x, 2, 2)),
                       "slice_channels: columns 2 to 4 of [2, 3]; they must be within its columns",
                       lockstep::ShapeError);
  CHECK_THROWS_AS(static_cast<void>(nn::slice_channels(context, x, -1, 2)), lockstep::ShapeError);
  CHECK_THROWS_AS(static_cast<void>(nn::slice_channels(context, x, 1, -1)), lockstep::ShapeError);
}
