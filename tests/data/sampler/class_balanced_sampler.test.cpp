// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/sampler/class_balanced_sampler.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {

struct Dataset {
  Index count;
  Index size() const { return count; }
  int get(Index) const { return 0; }
};
static_assert(data::Sampler<data::ClassBalancedSampler, Dataset>);

// Class 0 five times, class 2 twice, class 3 three times; none of class 1.
std::vector<std::int32_t> const classes{0, 2, 0, 3, 0, 0, 3, 2, 3, 0};

}  // namespace

TEST_CASE("each round of positions holds every class once, and each class repeats its samples in turn") {
  for (auto balance : {data::Balance::repeat_small, data::Balance::leave_out_large}) {
    auto const order = data::ClassBalancedSampler{.classes = classes, .balance = balance, .seed = 2}.over(Dataset{10});
    Index const rounds = balance == data::Balance::repeat_small ? 5 : 2;
    REQUIRE(order.size() == rounds * 3);
    std::map<Index, int> times;
    for (Index epoch = 0; epoch < 30; ++epoch) {
      for (Index round = 0; round < rounds; ++round) {
        std::set<std::int32_t> here;
        for (Index k = 0; k < 3; ++k) {
          auto const i = order.in(epoch)(round * 3 + k);
          ++times[i];
          here.insert(classes[static_cast<std::size_t>(i)]);
        }
        REQUIRE(here == std::set<std::int32_t>{0, 2, 3});
      }
    }
    // 30 epochs are 150 or 60 rounds, whole turns of 5, 2 and 3 samples: all samples of a class appear equally often.
    for (auto const& [i, count] : times) {
      auto const size = std::count(classes.begin(), classes.end(), classes[static_cast<std::size_t>(i)]);
      CHECK(count == 30 * rounds / size);
    }
    CHECK(times.size() == 10);
  }
}

TEST_CASE("the order of classes and of their samples changes with epoch and seed") {
  auto const make = [](std::uint64_t seed) {
    return data::ClassBalancedSampler{.classes = classes, .seed = seed}.over(Dataset{10});
  };
  auto const epoch_of = [](auto const& order, Index epoch) {
    std::vector<Index> out;
    for (Index p = 0; p < order.size(); ++p) out.push_back(order.in(epoch)(p));
    return out;
  };
  CHECK(epoch_of(make(1), 0) == epoch_of(make(1), 0));
  CHECK(epoch_of(make(1), 0) != epoch_of(make(1), 1));
  CHECK(epoch_of(make(1), 0) != epoch_of(make(2), 0));
}

TEST_CASE("an empty dataset and classes that do not fit are refused") {
  CHECK(data::ClassBalancedSampler{}.over(Dataset{0}).size() == 0);
  CHECK_THROWS_WITH_AS((static_cast<void>(data::ClassBalancedSampler{.classes = {1}}.over(Dataset{2}))),
                       doctest::Contains("1 classes for 2 samples"), ConfigError);
  CHECK_THROWS_WITH_AS((static_cast<void>(data::ClassBalancedSampler{.classes = {1, -3}}.over(Dataset{2}))),
                       doctest::Contains("sample 1 is -3"), ConfigError);
}

TEST_CASE("the order of classes changes with the epoch, and the order of a class's samples with each turn") {
  std::vector<std::int32_t> all(40, 0);
  std::fill_n(all.begin(), 8, 1);  // class 1 appears four times as often as it has samples
  auto const order = data::ClassBalancedSampler{.classes = all, .seed = 5}.over(Dataset{40});
  std::vector<std::vector<Index>> turns(4);
  int same = 0;
  for (Index p = 0; p < order.size(); ++p) {
    auto const i = order.in(0)(p);
    if (i < 8) turns[static_cast<std::size_t>(p / 16)].push_back(i);
    same += all[static_cast<std::size_t>(i)] == all[static_cast<std::size_t>(order.in(1)(p))];
  }
  CHECK(same < order.size());
  CHECK(std::set<std::vector<Index>>(turns.begin(), turns.end()).size() == 4);
}
