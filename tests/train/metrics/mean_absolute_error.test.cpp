// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/metrics/mean_absolute_error.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include <lockstep/core/error.hpp>

#include "regression.hpp"

using namespace lockstep;
using regression::add;
using regression::Run;

static_assert(train::Metric<train::MeanAbsoluteError<Run, float>>);
static_assert(!train::MeanAbsoluteError<Run, float>::higher_is_better);

TEST_CASE("it is the mean of the absolute errors, as scikit-learn's") {
  train::MeanAbsoluteError one{&Run::one};
  CHECK(std::isnan(one.value()));
  add(one, regression::one_output(), {2.5f, 0, 2, 8});
  CHECK(one.value() == doctest::Approx(0.5));
  CHECK(one.name() == std::string("mean_absolute_error"));

  train::MeanAbsoluteError two{&Run::two};
  add(two, regression::two_outputs(), {0, 2, -1, 2, 8, -5});
  CHECK(two.value() == doctest::Approx(0.75));
}

TEST_CASE("it counts one output, in the unit and by the name of the options") {
  train::MeanAbsoluteError second{&Run::two, {.output = 1, .unit = 10, .name = "energy"}};
  add(second, regression::two_outputs(), {0, 2, -1, 2, 8, -5});
  CHECK(second.value() == doctest::Approx(10 * 1));
  CHECK(second.name() == std::string("energy"));
}

TEST_CASE("rows without a target and padding do not count") {
  train::MeanAbsoluteError maybe{&Run::maybe};
  add(maybe, regression::one_output(), {2.5f, 100, 2, 8});
  CHECK(maybe.value() == doctest::Approx((0.5 + 0 + 1) / 3));
  train::MeanAbsoluteError each{&Run::each};
  regression::add_sequences(each);
  CHECK(each.value() == 1);
}

TEST_CASE("a prediction that is NaN makes the value NaN, and wrong shapes are refused") {
  train::MeanAbsoluteError one{&Run::one};
  add(one, regression::one_output(), {2.5f, std::nanf(""), 2, 8});
  CHECK(std::isnan(one.value()));
  CHECK_THROWS_WITH_AS(add(one, regression::one_output(), {1, 2, 3, 4, 5, 6, 7, 8}),
                       "MeanAbsoluteError: the prediction is [4, 2] and the target [4]; each element of the prediction "
                       "needs one of the target",
                       ShapeError);
  train::MeanAbsoluteError third{&Run::two, {.output = 2}};
  CHECK_THROWS_WITH_AS(
      add(third, regression::two_outputs(), {0, 2, -1, 2, 8, -5}),
      "MeanAbsoluteError: RegressionOptions::output is 2; the model predicts the outputs 0 to 1, and -1 "
      "names all",
      ShapeError);
}
