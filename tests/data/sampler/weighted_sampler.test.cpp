// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/sampler/weighted_sampler.hpp>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/data/detail/table_cache.hpp>

using namespace lockstep;
using data::Replacement;

namespace {

struct Dataset {
  Index count;
  Index size() const { return count; }
  int get(Index) const { return 0; }
};
static_assert(data::Sampler<data::WeightedSampler, Dataset>);

/// No count of probability p in `draws` may be further than six standard deviations from its mean: each fails with a
/// probability of 2e-9.
void check_counts(std::vector<double> const& counts, std::vector<double> const& weights, double draws) {
  double total = 0;
  for (auto weight : weights) total += weight;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    auto const p = weights[i] / total;
    CHECK(std::abs(counts[i] - p * draws) <= 6 * std::sqrt(p * (1 - p) * draws));
  }
}

}  // namespace

TEST_CASE("with replacement each position draws by weight") {
  for (std::vector<double> const& weights : {std::vector<double>{1},
                                             {1, 1},
                                             {0, 3, 1},
                                             {1e-3, 5, 0, 0, 2, 1e3},
                                             {1, 1, 5, 5, 7},
                                             std::vector<double>(33, 0.1)}) {
    data::WeightedSampler const sampler{.weights = weights, .samples = 20'000, .seed = 3};
    auto const order = sampler.over(Dataset{static_cast<Index>(weights.size())});
    CHECK(order.size() == 20'000);
    std::vector<double> counts(weights.size());
    for (Index epoch = 0; epoch < 2; ++epoch)
      for (Index p = 0; p < order.size(); ++p) ++counts[static_cast<std::size_t>(order.in(epoch)(p))];
    check_counts(counts, weights, 40'000);
  }
}

TEST_CASE("a weight of zero is never drawn, whatever the rounding of the others") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    std::vector<double> weights;
    for (std::uint64_t i = 0; i < 9; ++i) weights.push_back(i % 3 == 0 ? 0 : uniform(Philox(seed), i) + 0.01);
    auto const order = data::WeightedSampler{.weights = weights, .samples = 200, .seed = seed}.over(Dataset{9});
    auto const at = order.in(0);
    for (Index p = 0; p < order.size(); ++p) REQUIRE(at(p) % 3 != 0);
  }
}

TEST_CASE("without replacement no sample repeats, and the first is drawn by weight") {
  std::vector<double> const weights{1, 0, 4, 2, 8, 0, 1};
  data::WeightedSampler const sampler{.weights = weights, .replacement = Replacement::without, .seed = 3};
  auto const order = sampler.over(Dataset{7});
  CHECK(order.size() == 5);
  std::vector<double> first(7);
  constexpr Index epochs = 5'000;
  for (Index epoch = 0; epoch < epochs; ++epoch) {
    std::set<Index> seen;
    for (Index p = 0; p < 5; ++p) seen.insert(order.in(epoch)(p));
    REQUIRE(seen == std::set<Index>{0, 2, 3, 4, 6});
    ++first[static_cast<std::size_t>(order.in(epoch)(0))];
  }
  check_counts(first, weights, epochs);
}

TEST_CASE("without replacement fewer samples are the first of all") {
  data::WeightedSampler sampler{.weights = std::vector<double>(100, 1), .replacement = Replacement::without, .seed = 3};
  auto const all = sampler.over(Dataset{100});
  for (Index const samples : {1, 50, 99}) {
    sampler.samples = samples;
    auto const some = sampler.over(Dataset{100});
    REQUIRE(some.size() == samples);
    for (Index p = 0; p < samples; ++p) REQUIRE(some.in(2)(p) == all.in(2)(p));
  }
}

TEST_CASE("the order is a function of seed, epoch and position") {
  for (auto replacement : {Replacement::with, Replacement::without}) {
    auto const make = [&](std::uint64_t seed) {
      return data::WeightedSampler{
          .weights = std::vector<double>(100, 1.0), .samples = 90, .replacement = replacement, .seed = seed}
          .over(Dataset{100});
    };
    auto const a = make(1), b = make(1), c = make(2);
    int same_seed = 0, same_epoch = 0;
    for (Index p = 89; p >= 0; --p) {
      REQUIRE(a.in(4)(p) == b.in(4)(p));
      same_seed += a.in(4)(p) == c.in(4)(p);
      same_epoch += a.in(4)(p) == a.in(5)(p);
    }
    CHECK(same_seed < 20);  // about one in ninety is equal by chance
    CHECK(same_epoch < 20);
  }
}

TEST_CASE("invalid weights are refused") {
  auto const over = [](data::WeightedSampler const& sampler, Index count) {
    return sampler.over(Dataset{count}).size();
  };
  CHECK(over({.weights = {}}, 0) == 0);
  CHECK_THROWS_WITH_AS(over({.weights = {1, 2}}, 3), doctest::Contains("2 weights for 3 samples"), ConfigError);
  CHECK_THROWS_WITH_AS(over({.weights = {1, -2}}, 2), doctest::Contains("sample 1 is -2;"), ConfigError);
  CHECK_THROWS_AS(over({.weights = {1, std::nan("")}}, 2), ConfigError);
  CHECK_THROWS_AS(over({.weights = {1, std::numeric_limits<double>::infinity()}}, 2), ConfigError);
  CHECK_THROWS_WITH_AS(over({.weights = {1e308, 1e308}}, 2), doctest::Contains("sum of the weights"), ConfigError);
  CHECK_THROWS_WITH_AS(over({.weights = {0, 0}}, 2), doctest::Contains("no weight is positive"), ConfigError);
  CHECK_THROWS_AS(over({.weights = {1, 1}, .samples = -1}, 2), ConfigError);
  CHECK_THROWS_WITH_AS(over({.weights = {1, 0, 1}, .samples = 3, .replacement = Replacement::without}, 3),
                       doctest::Contains("at most the 2 samples"), ConfigError);
}

TEST_CASE("an order keeps its last few tables") {
  data::detail::TableCache tables(2);
  int made = 0;
  auto const first_of = [&](Index epoch) {
    auto const table = tables.get({epoch, 0}, [&](auto& out) { out.push_back(epoch), ++made; });
    return table->front();
  };
  for (Index const epoch : {0, 1, 0, 1, 2, 1}) CHECK(first_of(epoch) == epoch);
  CHECK(made == 3);
  CHECK(first_of(0) == 0);
  CHECK(made == 4);  // it had removed a table
}
