// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/elementwise/add.hpp>

#include <doctest/doctest.h>

#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/pooling/pooling.hpp>
#include <lockstep/nn/pooling/space_pooling.hpp>

#include "nn/layer_check.hpp"
#include "nn/space_check.hpp"

using namespace layer_check;

namespace {
/// x + layer(x): x is used twice, so its gradient is a sum.
auto const residual = [](auto& context, nn::Linear const& layer, auto const& x) {
  return nn::add(context, x, layer.forward(context, x));
};
/// Both sides are one tensor.
auto const doubled = [](auto& context, nn::Linear const& layer, auto const& x) {
  auto const y = layer.forward(context, x);
  return nn::add(context, y, y);
};
/// Adds to each token a vector of the whole sequence.
auto const add_bias = [](auto& context, nn::Linear const& layer, auto const& x) {
  return nn::add(context, x, layer.forward(context, nn::mean_pool(context, x)));
};
}  // namespace

TEST_CASE("gradients of both sides") {
  for (Index rows : {1, 4}) {
    Batch const batch{.rows = rows, .length = 9};
    for (auto const& result :
         {check(nn::Linear(7, 7), 7, batch, residual), check(nn::Linear(7, 7), 7, batch, doubled)}) {
      CAPTURE(result.where);
      CHECK(result.ok());
    }
  }
}

TEST_CASE("gradients of sequences and of the vector added to their tokens, without padding") {
  for (auto const& lengths : {std::vector<std::int32_t>{9}, {9, 0, 1, 4}}) {
    auto const result = check(nn::Linear(7, 7), 7,
                              {.rows = static_cast<Index>(lengths.size()), .length = 9, .lengths = lengths}, add_bias);
    CAPTURE(result.where);
    CHECK(result.ok());
  }
}

TEST_CASE("gradients of images, videos and time series and of the vector added to their places") {
  auto const shifted = [](auto& context, nn::Linear const& layer, auto const& x) {
    return nn::add(context, x, layer.forward(context, nn::global_average_pool(context, x)));
  };
  auto const series = space_check::trial<double>(nn::Linear(5, 5), lockstep::Extents<3>{2, 4, 5}, shifted).check();
  auto const image = space_check::trial<double>(nn::Linear(5, 5), lockstep::Extents<4>{2, 4, 3, 5}, shifted).check();
  CAPTURE(series.where);
  CHECK(series.ok());
  CAPTURE(image.where);
  CHECK(image.ok());
}

TEST_CASE_TEMPLATE("bits do not depend on threads, and evaluation gives equal values", T, float, double) {
  Batch const batch{.rows = 5, .length = 31, .lengths = {31, 1, 0, 7, 30}};
  for (int threads : {1, 2, 4})
    CHECK(run<T>(nn::Linear(33, 33), 33, batch, add_bias, threads) ==
          run<T>(nn::Linear(33, 33), 33, batch, add_bias, 1));
  CHECK(evaluate<T>(nn::Linear(33, 33), 33, batch, add_bias) ==
        run<T>(nn::Linear(33, 33), 33, batch, add_bias, 1).loss);
}

TEST_CASE("shapes that differ are refused with both sides") {
  CHECK(refusal(nn::Linear(5, 3), 5, residual) == "add: the sides are [4, 5] and [4, 3]; their shapes must be equal");
  CHECK(refusal(nn::Linear(5, 3), 5, add_bias) ==
        "add: the row to add is [2, 3] of [2, 5], the rows and channels of x; the two must be equal");
}
