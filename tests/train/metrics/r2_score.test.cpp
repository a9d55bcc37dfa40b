// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/metrics/r2_score.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include <lockstep/core/error.hpp>

#include "regression.hpp"

using namespace lockstep;
using regression::add;
using regression::Run;

static_assert(train::Metric<train::R2Score<Run, float>>);

TEST_CASE("it is the coefficient of determination, averaged over the outputs as scikit-learn's r2_score") {
  train::R2Score one{&Run::one};
  CHECK(std::isnan(one.value()));
  add(one, regression::one_output(), {2.5f, 0, 2, 8});
  CHECK(one.value() == doctest::Approx(0.9486081370449679));
  CHECK(one.name() == std::string("r2"));

  train::R2Score two{&Run::two};
  add(two, regression::two_outputs(), {0, 2, -1, 2, 8, -5});
  CHECK(two.value() == doctest::Approx((0.9654377880184332 + 0.9081632653061225) / 2));
  train::R2Score second{&Run::two, {.output = 1, .name = "energy"}};
  add(second, regression::two_outputs(), {0, 2, -1, 2, 8, -5});
  CHECK(second.value() == doctest::Approx(0.9081632653061225));
  CHECK(second.name() == std::string("energy"));
}

TEST_CASE("totals of two batches add up to those of one") {
  train::R2Score whole{&Run::one}, first{&Run::one}, second{&Run::one};
  auto const runs = regression::one_output();
  add(whole, runs, {2.5f, 0, 2, 8});
  add(first, {runs[0], runs[1]}, {2.5f, 0});
  add(second, {runs[2], runs[3]}, {2, 8});
  for (std::size_t i = 0; i < first.totals().size(); ++i) first.totals()[i] += second.totals()[i];
  CHECK(first.value() == whole.value());
}

TEST_CASE("equal targets count 1 if they are predicted exactly, otherwise 0") {
  train::R2Score exact{&Run::one}, off{&Run::one};
  add(exact, {{2, {}, {}, {}}, {2, {}, {}, {}}}, {2, 2});
  CHECK(exact.value() == 1);
  add(off, {{2, {}, {}, {}}, {2, {}, {}, {}}}, {2, 3});
  CHECK(off.value() == 0);
}

TEST_CASE("many equal targets whose sums are rounded count 0 if they are not predicted exactly") {
  for (float const target : {0.3f, 1.1f, 3.3f, -1e7f / 3}) {
    train::R2Score off{&Run::one}, exact{&Run::one}, nearly{&Run::one};
    std::vector<Run> runs(1000, Run{target, {}, {}, {}});
    for (int batch = 0; batch < 7; ++batch) {
      add(off, runs, std::vector<float>(1000, target + 1));
      add(exact, runs, std::vector<float>(1000, target));
    }
    CHECK(off.value() == 0);
    CHECK(exact.value() == 1);
    runs[0].one *= 1.001f;
    add(nearly, runs, std::vector<float>(1000, target));
    CHECK(nearly.value() == doctest::Approx(-1.0 / 999));  // the prediction of all others, not of the mean
  }
}

TEST_CASE("rows without a target and padding do not count, and a NaN is seen") {
  train::R2Score maybe{&Run::maybe};
  add(maybe, regression::one_output(), {2.5f, 100, 2, 8});
  CHECK(maybe.value() == doctest::Approx(1 - 1.25 / 14));  // targets 3, 2 and 7 with the mean 4
  train::R2Score each{&Run::each};
  regression::add_sequences(each);
  CHECK(each.value() == doctest::Approx(1 - 3 / (26.0 / 3)));  // targets 1, 5 and 2, errors of 1
  train::R2Score one{&Run::one};
  add(one, regression::one_output(), {2.5f, std::nanf(""), 2, 8});
  CHECK(std::isnan(one.value()));
}

TEST_CASE("more outputs than the target has are refused") {
  train::R2Score each{&Run::each};
  std::vector<Run> const runs{{0, {}, {}, {1, 2}}, {0, {}, {}, {3, 4}}};
  CHECK_THROWS_WITH_AS(add(each, runs, {1, 2, 3, 4}),
                       "R2Score: the model predicts output 1, and the target has outputs 0 to 0", ShapeError);
}
