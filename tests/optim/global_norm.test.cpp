// SPDX-License-Identifier: Apache-2.0
#include <lockstep/optim/global_norm.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

using lockstep::HostSpace;
using lockstep::Index;
using lockstep::TensorView;
using lockstep::ThreadPool;
using lockstep::optim::GlobalNorm;

namespace {
template <class T>
GlobalNorm measure(int threads, std::vector<T> const& gradients) {
  ThreadPool pool(threads);
  return GlobalNorm::of(lockstep::memory::Stream<HostSpace>(pool),
                        TensorView<T const, 1, HostSpace>(gradients.data(), {static_cast<Index>(gradients.size())}));
}
}  // namespace

TEST_CASE("the norm of 3 and 4 is 5, also for a sum's gradient over its weight") {
  auto const norm = measure<float>(1, {3, 0, -4});
  CHECK(norm.finite());
  CHECK(norm.norm() == 5);
  CHECK(norm.clip(5, 1) == 1);
  CHECK(norm.clip(1, 1) == 0.2);  // 5 * 0.2 = 1
  CHECK(norm.clip(1, 2) == 0.4);  // the mean's norm is 2.5; 2.5 * 0.4 = 1
  CHECK(norm.clip(100, 1) == 1);  // never enlarges
  CHECK(measure<float>(1, {0, 0}).clip(1, 1) == 1);
  CHECK(measure<float>(1, {}).norm() == 0);
  CHECK(measure<float>(1, {3 * 0x1p40f, 0, -4 * 0x1p40f}).unscaled(0x1p40).norm() == 5);
}

TEST_CASE_TEMPLATE("it equals a plain sum at any size, with equal bits for any number of threads", T, float, double) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  for (Index count : {0, 1, 31, 32, 33, 4095, 4096, 4097, 1'048'576, 1'048'577, 1'500'000}) {
    CAPTURE(count);
    std::vector<T> gradients(static_cast<std::size_t>(count));
    long double expected = 0;
    for (auto& g : gradients) {
      g = static_cast<T>(normal(random));
      expected += static_cast<long double>(g) * g;
    }
    auto const one = measure(1, gradients);
    // Positive terms: the relative error of a sum is below (additions in the longest chain + 1) u. A chain has a lane
    // of a chunk (at most 5860 / 32 terms), 32 lanes or as many leftovers, and 256 chunks.
    auto const u = static_cast<long double>(std::numeric_limits<double>::epsilon()) / 2;
    CHECK(std::abs(one.sum_of_squares - expected) <= (184 + 64 + 256 + 1) * u * expected);
    for (int threads : {2, 3}) CHECK(measure(threads, gradients).sum_of_squares == one.sum_of_squares);
  }
}

TEST_CASE("a single infinite or NaN gradient is detected; large finite ones are not infinite") {
  for (std::size_t const at : {0U, 31U, 32U, 4999U, 9999U}) {
    for (auto bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                     std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> gradients(10'000, 1);
      gradients[at] = bad;
      CHECK_FALSE(measure(2, gradients).finite());
    }
  }
  CHECK(measure(2, std::vector<float>(10'000, std::numeric_limits<float>::max())).finite());
}
