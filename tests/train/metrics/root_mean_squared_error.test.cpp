// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/metrics/root_mean_squared_error.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include <lockstep/core/error.hpp>

#include "regression.hpp"

using namespace lockstep;
using regression::add;
using regression::Run;

static_assert(train::Metric<train::RootMeanSquaredError<Run, float>>);
static_assert(!train::RootMeanSquaredError<Run, float>::higher_is_better);

TEST_CASE("it is the root of the mean of the squared errors") {
  train::RootMeanSquaredError one{&Run::one};
  CHECK(std::isnan(one.value()));
  add(one, regression::one_output(), {2.5f, 0, 2, 8});
  CHECK(one.value() == doctest::Approx(std::sqrt(0.375)));
  CHECK(one.name() == std::string("root_mean_squared_error"));

  train::RootMeanSquaredError two{&Run::two};
  add(two, regression::two_outputs(), {0, 2, -1, 2, 8, -5});
  CHECK(two.value() == doctest::Approx(std::sqrt(4.25 / 6)));
}

TEST_CASE("it counts one output, in the unit and by the name of the options") {
  train::RootMeanSquaredError second{&Run::two, {.output = 1, .unit = 10, .name = "energy"}};
  add(second, regression::two_outputs(), {0, 2, -1, 2, 8, -5});
  CHECK(second.value() == doctest::Approx(10 * 1));
  CHECK(second.name() == std::string("energy"));
}

TEST_CASE("rows without a target and padding do not count") {
  train::RootMeanSquaredError maybe{&Run::maybe};
  add(maybe, regression::one_output(), {2.5f, 100, 2, 8});
  CHECK(maybe.value() == doctest::Approx(std::sqrt(1.25 / 3)));
  train::RootMeanSquaredError each{&Run::each};
  regression::add_sequences(each);
  CHECK(each.value() == 1);
}

TEST_CASE("a prediction that is NaN makes the value NaN, and wrong shapes are refused") {
  train::RootMeanSquaredError one{&Run::one};
  add(one, regression::one_output(), {2.5f, std::nanf(""), 2, 8});
  CHECK(std::isnan(one.value()));
  CHECK_THROWS_WITH_AS(
      add(one, regression::one_output(), {1, 2, 3, 4, 5, 6, 7, 8}),
      "RootMeanSquaredError: the prediction is [4, 2] and the target [4]; each element of the prediction "
      "needs one of the target",
      ShapeError);
  train::RootMeanSquaredError third{&Run::two, {.output = 2}};
  CHECK_THROWS_WITH_AS(
      add(third, regression::two_outputs(), {0, 2, -1, 2, 8, -5}),
      "RootMeanSquaredError: RegressionOptions::output is 2; the model predicts the outputs 0 to 1, and -1 "
      "names all",
      ShapeError);
}
