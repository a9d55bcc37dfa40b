// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/sampler/sampler.hpp>

#include <doctest/doctest.h>
#include <lockstep/data/sampler/sequential_sampler.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>

using namespace lockstep;

namespace {

struct Numbers {
  Index size() const { return 7; }
  int get(Index i) const { return static_cast<int>(i); }
};
/// A user's own sampler: every sample twice.
struct TwiceSampler {
  struct Order {
    Index samples;
    Index size() const { return 2 * samples; }
    auto in(Index) const {
      return [n = samples](Index position) { return position % n; };
    }
  };
  Order over(data::Dataset auto const& dataset) const { return {dataset.size()}; }
};
struct NoSampler {};

static_assert(data::Sampler<data::SequentialSampler, Numbers>);
static_assert(data::Sampler<data::ShuffledSampler, Numbers>);
static_assert(data::Sampler<TwiceSampler, Numbers>);
static_assert(!data::Sampler<NoSampler, Numbers>);
static_assert(!data::Sampler<TwiceSampler, int>);

}  // namespace

TEST_CASE("an order is a pure function: repeated and backward calls give equal results") {
  auto const check = [](auto const& sampler) {
    auto const order = sampler.over(Numbers{});
    for (Index epoch = 0; epoch < 3; ++epoch) {
      std::vector<Index> forwards;
      auto const in = order.in(epoch);
      for (Index position = 0; position < order.size(); ++position) forwards.push_back(in(position));
      for (Index position = order.size(); position-- > 0;)
        CHECK(order.in(epoch)(position) == forwards[static_cast<std::size_t>(position)]);
    }
  };
  check(data::SequentialSampler{});
  check(data::ShuffledSampler{.seed = 3});
  check(TwiceSampler{});
}
