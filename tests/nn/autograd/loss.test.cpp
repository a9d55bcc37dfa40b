// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/autograd/loss.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace lockstep;

TEST_CASE("the mean of added losses is the weighted mean, not the mean of means") {
  nn::Loss<HostSpace> total;
  total += {6, 2};
  total += {1, 2};
  total += {3, 1};
  CHECK(total.mean() == 2);
}

TEST_CASE("a loss without weight has mean 0") { CHECK(nn::Loss<HostSpace>{}.mean() == 0); }

TEST_CASE("parts of a batch add up, both sums and weights") {
  std::vector<double> const sums{1.5, 2.5, 0}, weights{1, 2, 0};
  auto const loss = nn::Loss<HostSpace>::of(0, {sums.data(), {3}}, {weights.data(), {3}});
  CHECK(loss.sum == 4);
  CHECK(loss.weight == 3);
  CHECK(nn::Loss<HostSpace>::of(0, {}, {}).weight == 0);
}

TEST_CASE("an auxiliary loss shares the main loss's weight") {
  auto const loss = nn::Loss<HostSpace>{6, 2}.with_auxiliary({1, 50});
  CHECK(loss.sum == 7);
  CHECK(loss.weight == 2);
}
