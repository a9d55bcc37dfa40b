// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/loss/cross_entropy_options.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <vector>

using namespace lockstep;
using kernel::CrossEntropyOptions;

TEST_CASE("no options, and options that fit, are accepted") {
  CHECK_NOTHROW(CrossEntropyOptions{}.check(7));
  std::vector<float> const weights{1, 2};
  CHECK_NOTHROW((CrossEntropyOptions{.class_weights = weights, .label_smoothing = 1, .ignored = -100}.check(2)));
}

TEST_CASE("a wrong number of class weights is refused") {
  std::vector<float> const weights{1, 2};
  CHECK_THROWS_WITH_AS((CrossEntropyOptions{.class_weights = weights}.check(3)),
                       doctest::Contains("there are 3 classes and 2 class weights"), ShapeError);
}

TEST_CASE("a label smoothing outside [0, 1] is refused") {
  for (double smoothing : {-0.1, 1.5, std::numeric_limits<double>::quiet_NaN()})
    CHECK_THROWS_WITH_AS((CrossEntropyOptions{.label_smoothing = smoothing}.check(3)),
                         doctest::Contains("it must be in [0, 1]"), ConfigError);
}
