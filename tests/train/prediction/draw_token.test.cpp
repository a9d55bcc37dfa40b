// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/prediction/draw_token.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/memory/space.hpp>

using namespace lockstep;

namespace {

// Probabilities 0.1, 0.4, 0.2, 0.3: in the order of likelihood 1, 3, 2, 0.
std::array<double, 4> const numbers{std::log(0.1), std::log(0.4), std::log(0.2), std::log(0.3)};
TensorView<double const, 2, HostSpace> const logits(numbers.data(), {1, 4});

std::int32_t drawn(double random, train::DrawOptions const& options = {}) {
  return train::draw_token(logits, 0, random, options);
}

}  // namespace

TEST_CASE("tokens are drawn with their probabilities") {
  CHECK(drawn(0) == 1);
  CHECK(drawn(0.399) == 1);
  CHECK(drawn(0.401) == 3);
  CHECK(drawn(0.699) == 3);
  CHECK(drawn(0.701) == 2);
  CHECK(drawn(0.899) == 2);
  CHECK(drawn(0.901) == 0);
  CHECK(drawn(0.999999) == 0);
}

TEST_CASE("top_k keeps the most likely tokens, and top_p the fewest that reach its share") {
  CHECK(drawn(0.999999, {.top_k = 1}) == 1);
  CHECK(drawn(0.57, {.top_k = 2}) == 1);  // 0.4 / 0.7
  CHECK(drawn(0.58, {.top_k = 2}) == 3);
  CHECK(drawn(0.999999, {.top_k = 2}) == 3);
  CHECK(drawn(0.999999, {.top_k = 9}) == 0);
  CHECK(drawn(0.999999, {.top_p = 0.39}) == 1);
  CHECK(drawn(0.999999, {.top_p = 0.69}) == 3);
  CHECK(drawn(0.999999, {.top_p = 0.71}) == 2);
  CHECK(drawn(0.999999, {.top_k = 3, .top_p = 0.4}) == 1);  // 0.4 / 0.9
  CHECK(drawn(0.999999, {.top_k = 3, .top_p = 0.5}) == 3);
}

TEST_CASE("the temperature divides the logits, and 0 takes the most likely token") {
  CHECK(drawn(0.999999, {.temperature = 0}) == 1);
  CHECK(drawn(0.53, {.temperature = 0.5}) == 1);  // 0.16 / 0.3
  CHECK(drawn(0.54, {.temperature = 0.5}) == 3);
  CHECK(drawn(0.26, {.temperature = 1e9}) == 3);  // nearly uniform
}

TEST_CASE("the first of equally likely tokens has precedence, and impossible ones are not drawn") {
  std::array<float, 3> const equal{1, 1, -std::numeric_limits<float>::infinity()};
  TensorView<float const, 2, HostSpace> const view(equal.data(), {1, 3});
  CHECK(train::draw_token(view, 0, 0.999999, {.top_k = 1}) == 0);
  CHECK(train::draw_token(view, 0, 0.999999) == 1);
}

TEST_CASE("suppressed tokens are not drawn, and the others keep their ratios") {
  CHECK(drawn(0, {.suppressed = {1}}) == 3);
  CHECK(drawn(0.49, {.suppressed = {1}}) == 3);  // 0.3 / 0.6
  CHECK(drawn(0.51, {.suppressed = {1}}) == 2);
  CHECK(drawn(0.999999, {.suppressed = {1, 0, 4, -1}}) == 2);
  CHECK(drawn(0.999999, {.top_k = 1, .suppressed = {1}}) == 3);
  CHECK(drawn(0.999999, {.top_p = 0.49, .suppressed = {1}}) == 3);
  CHECK(drawn(0.999999, {.temperature = 0, .suppressed = {1}}) == 3);
  CHECK_THROWS_WITH_AS(drawn(0, {.suppressed = {0, 1, 2, 3}}), doctest::Contains("all tokens are suppressed"),
                       DataError);
}

TEST_CASE("options out of range and NaN are errors") {
  CHECK_THROWS_WITH_AS(drawn(0, {.temperature = -1}),
                       "draw_token: temperature -1, top_k 0, top_p 1; the first two must be at least 0, and "
                       "top_p in (0, 1]",
                       ConfigError);
  CHECK_THROWS_AS(drawn(0, {.top_p = 0}), ConfigError);
  CHECK_THROWS_AS(drawn(0, {.top_k = -1}), ConfigError);
  std::array<float, 2> const bad{0, std::numeric_limits<float>::quiet_NaN()};
  CHECK_THROWS_WITH_AS(
      static_cast<void>(train::draw_token(TensorView<float const, 2, HostSpace>(bad.data(), {1, 2}), 0, 0)),
      "draw_token: the logit of token 1 is nan; look for NaN in the parameters", DataError);
}
