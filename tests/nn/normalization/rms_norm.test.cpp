// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/normalization/rms_norm.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <utility>

#include <lockstep/nn/elementwise/add.hpp>
#include <lockstep/nn/linear/linear.hpp>

#include "nn/layer_check.hpp"

using namespace layer_check;

namespace {
auto const alone = [](auto& context, nn::RMSNorm const& layer, auto const& x) { return layer.forward(context, x); };

/// sum = x + dropout(linear(x)) and its norm, as in each part of a pre-norm transformer; `Uses` says which of both are
/// used later.
enum class Uses { both, sum, normalized };
struct Block {
  nn::Linear linear;
  nn::RMSNorm norm;
  nn::Dropout dropout;
  Uses uses;
  void visit(auto&& each) {
    each("linear", linear);
    each("norm", norm);
  }
};
auto const block = [](auto& context, Block const& b, auto const& x) {
  auto const [sum, normalized] = b.norm.add_and_normalize(context, x, b.linear.forward(context, x), b.dropout);
  if (b.uses == Uses::sum) return sum;
  if (b.uses == Uses::normalized) return normalized;
  return nn::add(context, sum, normalized);
};
auto const unfused = [](auto& context, Block const& b, auto const& x) {
  auto const sum = nn::add(context, x, b.dropout.forward(context, b.linear.forward(context, x)));
  if (b.uses == Uses::sum) return sum;
  auto const normalized = b.norm.forward(context, sum);
  if (b.uses == Uses::normalized) return normalized;
  return nn::add(context, sum, normalized);
};
Block make(Index width, double p, Uses uses = Uses::both) {
  return {nn::Linear(width, width), nn::RMSNorm(width), nn::Dropout(p), uses};
}

}  // namespace

TEST_CASE("gradients, alone and joined") {
  for (auto [rows, length] : {std::pair<Index, Index>{1, 1}, {3, 5}, {2, 70}})
    for (Index width : {2, 5, 8, 33}) {
      Batch const batch{.rows = rows, .length = length};
      auto const result = check(nn::RMSNorm(width), width, batch, alone);
      CAPTURE(width);
      CAPTURE(result.where);
      CHECK(result.ok());
      for (auto uses : {Uses::both, Uses::sum, Uses::normalized})
        for (double p : {0.0, 0.3}) {
          auto const joined = check(make(width, p, uses), width, batch, block, {.max_per_parameter = 16});
          CAPTURE(joined.where);
          CHECK(joined.ok());
        }
    }
}

TEST_CASE("a row can be wider than the buffer of the fused dropout") {
  auto const result = check(make(300, 0.3), 300, {.rows = 1, .length = 2}, block, {.max_per_parameter = 16});
  CAPTURE(result.where);
  CHECK(result.ok());
}

TEST_CASE("the fused layer equals dropout, addition and norm in sequence") {
  Batch const batch{.rows = 3, .length = 4, .lengths = {4, 2, 0}};
  for (auto uses : {Uses::both, Uses::sum, Uses::normalized})
    for (double p : {0.0, 0.5}) {
      auto const fused = run<double>(make(12, p, uses), 12, batch, block, 1),
                 separate = run<double>(make(12, p, uses), 12, batch, unfused, 1);
      CHECK(fused.loss == doctest::Approx(separate.loss).epsilon(1e-14));
      REQUIRE(fused.gradients.size() == separate.gradients.size());
      // 12 additions in another order, of terms of size one
      for (std::size_t i = 0; i < fused.gradients.size(); ++i)
        CHECK(std::abs(fused.gradients[i] - separate.gradients[i]) <= 1e-13 * (1 + std::abs(separate.gradients[i])));
    }
}

TEST_CASE_TEMPLATE("bits do not depend on threads or repetition", T, float, double) {
  Batch const batch{.rows = 9, .length = 50};
  auto const one = run<T>(make(40, 0.1), 40, batch, block, 1);
  for (int threads : {1, 2, 4}) CHECK(run<T>(make(40, 0.1), 40, batch, block, threads) == one);
}

TEST_CASE("an empty batch gives gradients of zero") {
  auto const pass = run<float>(nn::RMSNorm(5), 5, {.rows = 0, .length = 4}, alone, 2);
  for (float g : pass.gradients) CHECK(g == 0);
}

TEST_CASE("evaluation applies no dropout and stores nothing") {
  Batch const batch{.rows = 2, .length = 3};
  CHECK(evaluate<double>(make(6, 0.5), 6, batch, block) == run<double>(make(6, 0), 6, batch, block, 1).loss);
}

TEST_CASE("weights start at one, and by default 1e-6 is added to the mean square") {
  nn::RMSNorm layer(5);
  CHECK(nn::ParameterLayout::of(layer).entries()[0].initializer.scale == 1);
  Batch const batch{.rows = 2, .length = 3};
  CHECK(run<double>(layer, 5, batch, alone, 1) == run<double>(nn::RMSNorm(5, 1e-6), 5, batch, alone, 1));
}

TEST_CASE("the addend may be a batch's tensor, which gets no gradient") {
  auto const with = [](bool learned) {
    return [learned](auto& context, Block const& b, auto const& x) {
      auto added = b.linear.forward(context, x);
      if (!learned) added.tokens.slot = nullptr;
      return b.norm.add_and_normalize(context, x, added, b.dropout).normalized;
    };
  };
  Batch const batch{.rows = 2, .length = 3};
  auto const one = run<double>(make(6, 0), 6, batch, with(true), 1),
             other = run<double>(make(6, 0), 6, batch, with(false), 1);
  CHECK(one.loss == other.loss);
  CHECK(one.gradients != other.gradients);
}

TEST_CASE("shapes that disagree are refused with both numbers") {
  CHECK(refusal(nn::RMSNorm(5), 6, alone) ==
        "RMSNorm layer: the input is [4, 6] and weight is [5]; the input needs 5 columns");
  CHECK(refusal(Block{nn::Linear(6, 5), nn::RMSNorm(6), nn::Dropout(0), Uses::both}, 6, block) ==
        "RMSNorm layer.norm: the input is [4, 6] and the residual [4, 5]; their shapes must be equal");
  CHECK_NOTHROW(nn::RMSNorm(1));
  CHECK_THROWS_AS(nn::RMSNorm(0), lockstep::ConfigError);
  CHECK_THROWS_AS(nn::RMSNorm(4, 0), lockstep::ConfigError);
}
