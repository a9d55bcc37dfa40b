// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/sampler/per_class_sampler.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>

using namespace lockstep;

namespace {

struct Dataset {
  Index count;
  Index size() const { return count; }
  int get(Index) const { return 0; }
};
static_assert(data::BatchOrder<data::PerClassSampler::Order>);

/// 7 classes, one without samples and one with two; the others have 5 to 9.
std::vector<std::int32_t> classes() {
  std::vector<std::int32_t> all;
  for (std::int32_t k = 0, counts[] = {5, 6, 0, 7, 2, 9, 8}; k < 7; ++k)
    all.insert(all.end(), std::size_t(counts[k]), k);
  std::reverse(all.begin() + 3, all.begin() + 30);
  return all;
}

}  // namespace

TEST_CASE("a batch has a fixed number of samples from a fixed number of classes, and all samples have their turns") {
  auto const of = classes();
  REQUIRE(of.size() == 37);
  auto const order =
      data::PerClassSampler{.classes = of, .classes_per_batch = 3, .samples_per_class = 3, .seed = 2}.over(Dataset{37});
  REQUIRE(order.batches() == 4);
  REQUIRE(order.max_rows() == 9);
  REQUIRE(order.size() == 36);
  std::map<Index, int> times;
  std::map<std::int32_t, int> class_times;
  for (Index epoch = 0; epoch < 60; ++epoch) {
    auto const in = order.in(epoch);
    for (Index batch = 0; batch < order.batches(); ++batch) {
      CHECK(order.rows(epoch, batch) == 9);
      std::set<std::int32_t> here;
      for (Index k = 0; k < 3; ++k) {
        std::set<Index> samples;
        auto const first = of[static_cast<std::size_t>(in(batch * 9 + k * 3))];
        for (Index i = 0; i < 3; ++i) {
          auto const sample = in(batch * 9 + k * 3 + i);
          REQUIRE(of[static_cast<std::size_t>(sample)] == first);
          samples.insert(sample), ++times[sample];
        }
        CHECK(samples.size() == (first == 4 ? 2 : 3));  // one of two samples repeats
        here.insert(first), ++class_times[first];
      }
      CHECK(here.size() == 3);
    }
  }
  CHECK(times.size() == 37);
  for (auto const& [each, count] : class_times) CHECK(count == 120);  // two batches are a turn of all six
}

TEST_CASE("the order changes with epoch and seed, and is equal for any number of ranks") {
  auto const make = [](std::uint64_t seed) {
    return data::PerClassSampler{.classes = classes(), .classes_per_batch = 2, .samples_per_class = 4, .seed = seed}
        .over(Dataset{37});
  };
  auto const epoch_of = [](auto const& order, Index epoch) {
    std::vector<Index> out;
    for (Index p = 0; p < order.size(); ++p) out.push_back(order.in(epoch)(p));
    return out;
  };
  CHECK(epoch_of(make(1), 3) == epoch_of(make(1), 3));
  CHECK(epoch_of(make(1), 3) != epoch_of(make(2), 3));
  CHECK(epoch_of(make(1), 3) != epoch_of(make(1), 4));

  struct Number {
    int value;
  };
  std::vector<Number> numbers;
  for (int i = 0; i < 37; ++i) numbers.push_back({i});
  data::DataLoader loader{data::InMemoryDataset{numbers},
                          data::PerClassSampler{.classes = classes(), .classes_per_batch = 2, .samples_per_class = 4},
                          data::PadCollate{},
                          {.workers = 0}};
  CHECK(loader.steps({}) == 4);
  auto const order = make(0);
  for (int rank = 0; rank < 2; ++rank) {
    loader.start({rank, 1, 2}, 1, 0, 2);
    for (Index step = 0; step < 2; ++step) {
      auto const held = loader.next();
      auto const& values = held.batches()[0][&Number::value].values;
      REQUIRE(values.size() == 8);
      for (Index i = 0; i < 8; ++i) CHECK(values(i) == order.in(1)((2 * step + rank) * 8 + i));
    }
  }
}

TEST_CASE("fewer samples than a batch has rows make one batch; an empty dataset makes none") {
  auto const few =
      data::PerClassSampler{.classes = {0, 1, 1}, .classes_per_batch = 2, .samples_per_class = 4}.over(Dataset{3});
  CHECK(few.batches() == 1);
  std::set<Index> all;
  for (Index p = 0; p < 8; ++p) all.insert(few.in(0)(p));
  CHECK(all == std::set<Index>{0, 1, 2});
  CHECK(data::PerClassSampler{.classes = {}}.over(Dataset{0}).size() == 0);
}

TEST_CASE("class numbers can be far apart") {
  auto const order =
      data::PerClassSampler{.classes = {2147483647, 5, 5}, .classes_per_batch = 2, .samples_per_class = 1}.over(
          Dataset{3});
  CHECK(order.batches() == 1);
}

TEST_CASE("invalid options are refused") {
  auto const message = [](data::PerClassSampler const& sampler, Index samples, char const* text) {
    CHECK_THROWS_WITH_AS(static_cast<void>(sampler.over(Dataset{samples})), doctest::Contains(text), ConfigError);
  };
  message({.classes = {0, 1}}, 3, "2 classes for 3 samples");
  message({.classes = {0, -1}}, 2, "the class of sample 1 is -1");
  message({.classes = {0, 1}, .classes_per_batch = 3}, 2, "classes_per_batch is 3, and the samples are of 2 classes");
  message({.classes = {0, 1}, .samples_per_class = 0}, 2, "samples_per_class 0; both must be within [1, 2^20]");
}
