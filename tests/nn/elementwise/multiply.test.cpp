// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/elementwise/multiply.hpp>

#include <doctest/doctest.h>

#include <lockstep/nn/elementwise/sigmoid.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/normalization/layer_norm.hpp>
#include <lockstep/nn/pooling/pooling.hpp>
#include <lockstep/nn/pooling/space_pooling.hpp>

#include "nn/layer_check.hpp"
#include "nn/space_check.hpp"

using namespace layer_check;

namespace {
/// x * layer(x): x is used twice, so its gradient is a sum.
auto const gated = [](auto& context, nn::Linear const& layer, auto const& x) {
  return nn::multiply(context, x, layer.forward(context, x));
};
/// Both sides are one tensor.
auto const square = [](auto& context, nn::Linear const& layer, auto const& x) {
  auto const y = layer.forward(context, x);
  return nn::multiply(context, y, y);
};
/// One side has no gradient.
auto const masked = [](auto& context, nn::Linear const& layer, auto const& x) {
  auto const y = layer.forward(context, x);
  auto const mask = context.template temporary<typename std::decay_t<decltype(context)>::Scalar>(y.tokens.value.extent);
  for (Index i = 0; i < mask.size(); ++i) mask.data[i] = static_cast<float>(i % 3);
  return nn::multiply(context, y, y.with(context.input(mask)));
};
/// Multiplies channels of a sequence by a vector of the whole sequence.
auto const excited = [](auto& context, nn::Linear const& layer, auto const& x) {
  auto const factors = nn::sigmoid(context, layer.forward(context, nn::mean_pool(context, x)));
  return nn::multiply(context, x, factors);
};
struct NormAndMap {
  nn::LayerNorm norm{7};
  nn::Linear map{7, 7};
  void visit(auto&& each) { each("norm", norm), each("map", map); }
};
/// Backward reads a norm's output that was discarded after the norm.
auto const made_again = [](auto& context, NormAndMap const& layer, auto const& x) {
  auto const y = layer.norm.forward(context, x);
  auto const z = nn::multiply(context, y, layer.map.forward(context, y));
  context.release_until_backward(y.tokens);
  return z;
};
}  // namespace

TEST_CASE("gradients of both sides") {
  for (Index rows : {1, 4}) {
    Batch const batch{.rows = rows, .length = 9};
    for (auto const& result : {check(nn::Linear(7, 7), 7, batch, gated), check(nn::Linear(7, 7), 7, batch, square),
                               check(nn::Linear(7, 7), 7, batch, masked), check(NormAndMap{}, 7, batch, made_again)}) {
      CAPTURE(result.where);
      CHECK(result.ok());
    }
  }
}

TEST_CASE("gradients of sequences and of their factors, without padding") {
  for (auto const& lengths : {std::vector<std::int32_t>{9}, {9, 0, 1, 4}}) {
    auto const result = check(nn::Linear(7, 7), 7,
                              {.rows = static_cast<Index>(lengths.size()), .length = 9, .lengths = lengths}, excited);
    CAPTURE(result.where);
    CHECK(result.ok());
  }
}

TEST_CASE("gradients of images, videos and time series and of their factors") {
  auto const squeezed = [](auto& context, nn::Linear const& layer, auto const& x) {
    return nn::multiply(context, x, nn::sigmoid(context, layer.forward(context, nn::global_average_pool(context, x))));
  };
  auto const series = space_check::trial<double>(nn::Linear(5, 5), lockstep::Extents<3>{2, 4, 5}, squeezed).check();
  auto const image = space_check::trial<double>(nn::Linear(5, 5), lockstep::Extents<4>{2, 4, 3, 5}, squeezed).check();
  CAPTURE(series.where);
  CHECK(series.ok());
  CAPTURE(image.where);
  CHECK(image.ok());
}

TEST_CASE("a reshaped side is multiplied by one factor per row") {
  auto const weighted = [](auto& context, auto const& layer, auto x) {
    auto const rows = x.extent(0), width = x.extent(1);
    auto const gate = nn::sigmoid(context, layer.forward(context, x));  // [rows, 1]
    return nn::multiply(context, x.reshape(lockstep::Extents<3>{rows, width, 1}), gate)
        .reshape(lockstep::Extents<2>{rows, width});
  };
  auto const result = space_check::trial<double>(nn::Linear(5, 1), lockstep::Extents<2>{7, 5}, weighted).check();
  CAPTURE(result.where);
  CHECK(result.ok());
}

TEST_CASE_TEMPLATE("bits do not depend on threads, and evaluation gives equal values", T, float, double) {
  Batch const batch{.rows = 5, .length = 31, .lengths = {31, 1, 0, 7, 30}};
  for (int threads : {1, 2, 4}) {
    CHECK(run<T>(nn::Linear(33, 33), 33, batch, gated, threads) == run<T>(nn::Linear(33, 33), 33, batch, gated, 1));
    CHECK(run<T>(nn::Linear(33, 33), 33, batch, excited, threads) == run<T>(nn::Linear(33, 33), 33, batch, excited, 1));
  }
  CHECK(evaluate<T>(nn::Linear(33, 33), 33, batch, excited) == run<T>(nn::Linear(33, 33), 33, batch, excited, 1).loss);
}

TEST_CASE("shapes that differ are refused with both sides") {
  CHECK(refusal(nn::Linear(5, 3), 5, gated) == "multiply: the sides are [4, 5] and [4, 3]; their shapes must be equal");
  CHECK(refusal(nn::Linear(5, 1), 5, gated) ==
        "multiply: the sides are [4, 5] and [4, 1]; their shapes must be equal; to apply one number to each row, "
        "reshape the first side to [4, 5, 1]");
  CHECK(refusal(nn::Linear(5, 3), 5, excited) ==
        "multiply: the factors are [2, 3] of [2, 5], the rows and channels of x; the two must be equal");
}
