// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/sampler/shuffled_sampler.hpp>

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include <doctest/doctest.h>
#include <rapidcheck.h>

using namespace lockstep;

namespace {

struct Numbers {
  Index count;
  Index size() const { return count; }
  int get(Index i) const { return static_cast<int>(i); }
};

std::vector<Index> order_of(std::uint64_t seed, Index epoch, Index count) {
  auto const order = data::ShuffledSampler{.seed = seed}.over(Numbers{count});
  std::vector<Index> all;
  for (Index position = 0; position < count; ++position) all.push_back(order.in(epoch)(position));
  return all;
}

}  // namespace

TEST_CASE("every epoch holds every index once") {
  CHECK(rc::check("a permutation", [] {
    auto const count = *rc::gen::inRange<Index>(0, 3000);
    auto all = order_of(*rc::gen::arbitrary<std::uint64_t>(), *rc::gen::inRange<Index>(0, 1000), count);
    std::sort(all.begin(), all.end());
    for (Index i = 0; i < count; ++i) RC_ASSERT(all[static_cast<std::size_t>(i)] == i);
  }));
}

TEST_CASE("seed and epoch both change the order and are not interchangeable") {
  CHECK(order_of(1, 2, 100) == order_of(1, 2, 100));
  std::set<std::vector<Index>> orders;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (Index epoch = 0; epoch < 10; ++epoch) orders.insert(order_of(seed, epoch, 100));
  }
  CHECK(orders.size() == 100);  // in particular (seed 0, epoch 1) is not (seed 1, epoch 0)
}

TEST_CASE("a position among a thousand million takes no more time than others") {
  auto const order = data::ShuffledSampler{.seed = 4}.over(Numbers{1'000'000'000});
  auto const index = order.in(3)(999'999'999);
  CHECK(index >= 0);
  CHECK(index < 1'000'000'000);
}
