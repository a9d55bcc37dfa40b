// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/sampler/length_bucketed_sampler.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/core/philox.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>

using namespace lockstep;

namespace {

struct Dataset {
  Index count;
  Index size() const { return count; }
  int get(Index) const { return 0; }
};
static_assert(data::Sampler<data::LengthBucketedSampler, Dataset>);

/// Lognormal, within [30, 600]: lengths of recorded poses.
std::vector<std::int32_t> lengths(Index count) {
  std::vector<std::int32_t> out;
  for (Index i = 0; i < count; ++i) {
    auto const length = std::exp(5.0 + 0.6 * normal(Philox(1), static_cast<std::uint64_t>(i)));
    out.push_back(static_cast<std::int32_t>(std::clamp(length, 30.0, 600.0)));
  }
  return out;
}
/// Returns the fraction of padded slots if each batch is padded to its longest sample.
template <class Order>
double waste(Order const& order, std::vector<std::int32_t> const& lengths, Index batch) {
  double slots = 0, used = 0;
  auto at = order.in(0);
  for (Index p = 0; p < order.size(); p += batch) {
    Index longest = 0, end = std::min(order.size(), p + batch);
    for (Index k = p; k < end; ++k) {
      auto const length = static_cast<Index>(lengths[static_cast<std::size_t>(at(k))]);
      longest = std::max(longest, length);
      used += static_cast<double>(length);
    }
    slots += static_cast<double>(longest * (end - p));
  }
  return 1 - used / slots;
}

}  // namespace

TEST_CASE("every sample appears once, for every length, batch size and window") {
  for (Index count : {0, 1, 31, 32, 33, 100, 257}) {
    auto const all = lengths(count);
    for (Index batch : {1, 8, 33}) {
      for (Index window : {1, 32, 1000}) {
        auto const order =
            data::LengthBucketedSampler{.lengths = all, .global_batch = batch, .window = window, .seed = 4}.over(
                Dataset{count});
        REQUIRE(order.size() == count);
        for (Index epoch : {0, 1}) {
          std::vector<Index> seen;
          for (Index p = 0; p < count; ++p) seen.push_back(order.in(epoch)(p));
          std::sort(seen.begin(), seen.end());
          for (Index i = 0; i < count; ++i) REQUIRE(seen[static_cast<std::size_t>(i)] == i);
        }
      }
    }
  }
}

TEST_CASE("padding is small, and batches of all lengths are mixed") {
  auto const all = lengths(20'000);
  auto const padding = [&](Index batch, Index window) {
    data::LengthBucketedSampler const sampler{.lengths = all, .global_batch = batch, .window = window, .seed = 1};
    return waste(sampler.over(Dataset{20'000}), all, batch);
  };
  auto const shuffled = waste(data::ShuffledSampler{.seed = 1}.over(Dataset{20'000}), all, 32);
  // A batch takes its lengths from batch / window of the distribution, so a quarter of that at least halves the waste.
  CHECK(padding(16, 1024) <= 0.03);
  CHECK(padding(32, 1024) <= 0.06);
  CHECK(padding(32, 4096) <= 0.03);
  CHECK(shuffled > 0.4);
  // In sorted windows adjacent batches would differ little; shuffled batches differ by about the spread of all lengths.
  auto const order = data::LengthBucketedSampler{.lengths = all, .global_batch = 32, .seed = 1}.over(Dataset{20'000});
  int far = 0;
  auto const length = [&](Index p) { return all[static_cast<std::size_t>(order.in(0)(p))]; };
  for (Index p = 32; p < 20'000; p += 32) far += std::abs(length(p) - length(p - 32)) > 40;
  CHECK(far > 300);
}

TEST_CASE("the order changes with epoch and seed, and not with the caller") {
  auto const all = lengths(300);
  auto const make = [&](std::uint64_t seed) {
    return data::LengthBucketedSampler{.lengths = all, .global_batch = 8, .window = 64, .seed = seed}.over(
        Dataset{300});
  };
  auto const a = make(1), b = make(1), c = make(2);
  int epochs = 0, seeds = 0;
  for (Index p = 299; p >= 0; --p) {
    REQUIRE(a.in(3)(p) == b.in(3)(p));
    epochs += a.in(3)(p) == a.in(2)(p);
    seeds += a.in(3)(p) == c.in(3)(p);
  }
  CHECK(epochs < 30);
  CHECK(seeds < 30);
}

TEST_CASE("an unlimited window or batch is the whole dataset") {
  std::vector<std::int32_t> const all{3, 1, 2, 5, 4};
  constexpr auto most = std::numeric_limits<Index>::max();
  auto const order = [&](Index batch, Index window) {
    auto const of =
        data::LengthBucketedSampler{.lengths = all, .global_batch = batch, .window = window}.over(Dataset{5});
    std::vector<Index> out;
    for (Index p = 0; p < 5; ++p) out.push_back(of.in(1)(p));
    return out;
  };
  CHECK(order(2, most) == order(2, 5));
  CHECK(order(most, most) == std::vector<Index>{1, 2, 0, 4, 3});
}

TEST_CASE("options out of range are refused") {
  CHECK_THROWS_WITH_AS((static_cast<void>(data::LengthBucketedSampler{.lengths = {1}}.over(Dataset{2}))),
                       doctest::Contains("1 lengths for 2 samples"), ConfigError);
  CHECK_THROWS_WITH_AS(
      (static_cast<void>(data::LengthBucketedSampler{.lengths = {1}, .global_batch = 0}.over(Dataset{1}))),
      doctest::Contains("global_batch is 0"), ConfigError);
  CHECK_THROWS_WITH_AS((static_cast<void>(data::LengthBucketedSampler{.lengths = {1}, .window = 0}.over(Dataset{1}))),
                       doctest::Contains("window is 0"), ConfigError);
}

TEST_CASE("windows are whole batches, each shuffled differently; one thread can read positions in any order") {
  auto const all = lengths(480);
  auto const order =
      data::LengthBucketedSampler{.lengths = all, .global_batch = 4, .window = 10, .seed = 6}.over(Dataset{480});
  auto place = order.in(2);
  std::set<std::vector<std::size_t>> ranks;  // orders of a window's batches by length
  for (Index window = 0; window < 480; window += 12) {
    std::vector<std::pair<std::int32_t, std::int32_t>> batches;  // shortest and longest
    for (Index p = window; p < window + 12; ++p) {
      REQUIRE(place(p) == order.in(2)(p));
      auto const length = all[static_cast<std::size_t>(place(p))];
      if (p % 4 == 0) batches.emplace_back(length, length);
      auto& [shortest, longest] = batches.back();
      shortest = std::min(shortest, length);
      longest = std::max(longest, length);
    }
    CHECK(place(479 - window) == order.in(2)(479 - window));
    std::vector<std::size_t> rank{0, 1, 2};
    std::sort(rank.begin(), rank.end(), [&](auto a, auto b) { return batches[a] < batches[b]; });
    CHECK(batches[rank[0]].second <= batches[rank[1]].first);
    CHECK(batches[rank[1]].second <= batches[rank[2]].first);
    ranks.insert(rank);
  }
  CHECK(ranks.size() == 6);
}

TEST_CASE("the short batch, which a tail can drop, has samples of any length") {
  std::vector<std::int32_t> all(300);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int32_t>(i);
  auto const order = data::LengthBucketedSampler{.lengths = all, .global_batch = 64, .seed = 2}.over(Dataset{300});
  int longest_is_used = 0, short_batches = 0;
  for (Index epoch = 0; epoch < 50; ++epoch) {
    for (Index p = 0; p < 256; ++p) longest_is_used += order.in(epoch)(p) == 299;
    for (Index p = 256; p < 300; ++p) short_batches += order.in(epoch)(p) < 150;
  }
  CHECK(longest_is_used > 25);  // 43 are expected
  CHECK(short_batches > 800);   // out of 1,100
}

TEST_CASE("a loader whose micro-steps hold samples of several of the sampler's batches is refused") {
  struct Number {
    int value;
  };
  std::vector<Number> const numbers(100);
  data::DataLoader loader{data::InMemoryDataset{numbers},
                          data::LengthBucketedSampler{.lengths = lengths(100), .global_batch = 16},
                          data::PadCollate{},
                          {.batch_size = 8, .workers = 0}};
  CHECK_THROWS_WITH_AS(
      loader.start({0, 1, 3}, 0, 0, 1),
      "DataLoader: the sampler's global_batch is 16; it must be 24 or a multiple of it, which is "
      "batch_size times the 3 ranks, devices or shards (split.all), so that each batch has samples that "
      "belong together",
      ConfigError);
  loader.start({0, 1, 2}, 0, 0, 1);
  CHECK(loader.next().batches()[0].rows() == 8);
  auto const after_two_ranks = loader.state_before({0, 1, 2}, 0, 1);
  loader.resume({0, 1, 1}, after_two_ranks, 1);  // one rank, with two micro-steps for each earlier one
  CHECK(loader.next().batches()[0].rows() == 8);
}
