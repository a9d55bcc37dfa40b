// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/loss.hpp>

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("the mean of added losses is the weighted mean, not the mean of means") {
  nn::Loss<HostSpace> total;
  total += {6, 2};
  total += {1, 2};
  total += {3, 1};
  CHECK(total.mean() == 2);
}

TEST_CASE("a loss without weight has mean 0") { CHECK(nn::Loss<HostSpace>{}.mean() == 0); }
