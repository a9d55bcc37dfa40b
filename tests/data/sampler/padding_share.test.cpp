// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/sampler/padding_share.hpp>

#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/data/sampler/length_bucketed_sampler.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/data/sampler/token_budget_sampler.hpp>

using namespace lockstep;

namespace {

struct Dataset {
  Index count;
  Index size() const { return count; }
  int get(Index) const { return 0; }
};

double in_order(std::vector<std::int32_t> const& lengths, Index batch_size, int shards) {
  return data::padding_share(data::SequentialSampler{}.over(Dataset{std::ssize(lengths)}), lengths, batch_size, shards);
}

}  // namespace

TEST_CASE("the share of padding equals values computed by hand") {
  CHECK(in_order({}, 4, 1) == 0);
  CHECK(in_order({5}, 4, 1) == 0);
  CHECK(in_order({3, 3, 3, 3}, 2, 1) == 0);
  CHECK(in_order({1, 3, 2, 2}, 2, 1) == doctest::Approx(1 - 8.0 / 10));  // 2 x 3 and 2 x 2 slots
  CHECK(in_order({1, 3, 2, 2, 7}, 2, 1) == doctest::Approx(1 - 15.0 / 17));
  CHECK(in_order({1, 3, 1, 3}, 2, 2) == 0);  // the first shard has the first and the third
  CHECK(in_order({1, 3, 1, 3}, 2, 1) == doctest::Approx(1 - 8.0 / 12));
  CHECK(in_order({0, 0}, 2, 1) == 0);
}

TEST_CASE("length buckets leave less padding than a shuffled order") {
  std::vector<std::int32_t> lengths;
  for (int i = 0; i < 1000; ++i) lengths.push_back(10 + i * i % 191);
  Dataset const dataset{1000};
  auto const shuffled = data::padding_share(data::ShuffledSampler{.seed = 1}.over(dataset), lengths, 8, 4);
  data::LengthBucketedSampler const buckets{.lengths = lengths, .global_batch = 32, .window = 1000, .seed = 1};
  auto const bucketed = data::padding_share(buckets.over(dataset), lengths, 8, 4);
  CHECK(shuffled > 0.2);
  CHECK(bucketed < 0.1);
}

TEST_CASE("batches that the sampler chooses count as they are") {
  std::vector<std::int32_t> const lengths{4, 2, 3, 2};
  Dataset const dataset{4};
  // The batches are 4 and 3, and 2 and 2.
  data::TokenBudgetSampler const budget{.lengths = lengths, .tokens = 8, .spread = 0, .min_batches = 1, .max_rows = 2};
  for (int shards : {1, 2, 3}) CHECK(data::padding_share(budget.over(dataset), lengths, 1, shards) == 1 - 11.0 / 12);
  // The last batch has a row less.
  std::vector<std::int32_t> const odd{4, 2, 3};
  data::TokenBudgetSampler const rest{.lengths = odd, .tokens = 8, .spread = 0, .min_batches = 1, .max_rows = 2};
  for (int shards : {1, 2}) CHECK(data::padding_share(rest.over(Dataset{3}), odd, 1, shards) == 1 - 9.0 / 10);
}
