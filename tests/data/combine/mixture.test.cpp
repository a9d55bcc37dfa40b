// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/combine/mixture.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>

#include "data/read_by_workers.hpp"

using namespace lockstep;

namespace {

struct Part {
  Index count;
  int mark;
  Index size() const { return count; }
  int get(Index i) const { return mark * 1000 + static_cast<int>(i); }
};

}  // namespace

TEST_CASE("each thousand consecutive samples contain each dataset's share") {
  data::Mixture const mixture(std::vector{Part{7, 0}, Part{100, 1}, Part{1000, 2}}, {1, 2, 7}, 5'000, 3);
  CHECK(mixture.size() == 5'000);
  std::vector<int> marks;
  for (Index i = 0; i < 5'000; ++i) marks.push_back(mixture.get(i) / 1000);
  for (auto begin = marks.begin(); begin != marks.begin() + 4'000; begin += 8) {
    REQUIRE(std::count(begin, begin + 1000, 0) == 100);
    REQUIRE(std::count(begin, begin + 1000, 1) == 200);
  }
}

TEST_CASE("each dataset's samples all appear before one repeats") {
  std::vector<Part> const parts{Part{7, 0}, Part{100, 1}, Part{1000, 2}};
  data::Mixture const mixture(parts, {0.1, 0.2, 0.7}, 3'000);
  std::vector<Index> next(3);
  for (Index i = 0; i < 3'000; ++i) {
    auto const [dataset, sample] = mixture.source(i);
    auto const d = static_cast<std::size_t>(dataset);
    ++next[d];
    CHECK(sample < parts[d].count);
  }
  std::vector<std::vector<int>> times{std::vector<int>(7), std::vector<int>(100), std::vector<int>(1000)};
  for (Index i = 0; i < 3'000; ++i) {
    auto const [dataset, sample] = mixture.source(i);
    ++times[static_cast<std::size_t>(dataset)][static_cast<std::size_t>(sample)];
  }
  auto const spread = [](std::vector<int> const& each) {
    auto const [least, most] = std::minmax_element(each.begin(), each.end());
    return *most - *least;
  };
  for (auto const& each : times) CHECK(spread(each) <= 1);
  CHECK(next == std::vector<Index>{300, 600, 2'100});
}

TEST_CASE("the default length is that of all datasets together; the seed changes only the order") {
  std::vector<Part> const parts{Part{10, 0}, Part{20, 1}};
  data::Mixture const a(parts, {1, 1}), b(parts, {1, 1}, 0, 1);
  CHECK(a.size() == 30);
  int same = 0;
  for (Index i = 0; i < 30; ++i) same += a.get(i) == b.get(i);
  CHECK(same < 25);
  CHECK(a.name(0).find(" of dataset ") != std::string::npos);
}

TEST_CASE("invalid mixtures are refused") {
  auto const make = [](std::vector<Part> const& parts, std::vector<double> const& weights, Index samples = 10) {
    return data::Mixture(parts, weights, samples).size();
  };
  Part const part{3, 0};
  CHECK(make({part}, {5}) == 10);
  CHECK_THROWS_WITH_AS(make({}, {}), doctest::Contains("0 datasets and 0 weights"), ConfigError);
  CHECK_THROWS_WITH_AS(make({part}, {1, 2}), doctest::Contains("1 datasets and 2 weights"), ConfigError);
  CHECK_THROWS_WITH_AS(make({part, part}, {1, 0}), doctest::Contains("weight 1 is 0;"), ConfigError);
  CHECK_THROWS_AS(make({part, part}, {1, std::nan("")}), ConfigError);
  CHECK_THROWS_WITH_AS(make({part, part}, {1e308, 1e308}), doctest::Contains("sum of the weights is inf"), ConfigError);
  CHECK_THROWS_WITH_AS(make({part, part}, {1, 1e-6}), doctest::Contains("less than a thousandth"), ConfigError);
  CHECK_THROWS_WITH_AS(make({part, Part{0, 1}}, {1, 1}), doctest::Contains("dataset 1 is empty"), ConfigError);
  CHECK_THROWS_WITH_AS(make({part}, {1}, -1), doctest::Contains("samples is -1"), ConfigError);
}

TEST_CASE("datasets that draw random numbers get the loader's key") {
  struct Drawn : Part {
    using Part::get;
    int get(Index i, data::SampleKey const& key) const { return get(i) + 100'000 * static_cast<int>(key.position); }
  };
  data::Mixture const mixture(std::vector<Drawn>{{{7, 1}}, {{7, 2}}}, {1, 1});
  CHECK(mixture.get(3, {0, 0, 4}) == mixture.get(3) + 400'000);
  static_assert(!data::DrawsSamples<data::Mixture<Part>>);
}

TEST_CASE("the fingerprint changes with datasets, weights and seed") {
  Part const a{10, 0}, b{20, 1};
  std::set<std::uint64_t> seen;
  seen.insert(data::Mixture(std::vector{a, b}, {1, 1}).fingerprint());
  seen.insert(data::Mixture(std::vector{b, a}, {1, 1}).fingerprint());
  seen.insert(data::Mixture(std::vector{a, b}, {1, 2}).fingerprint());
  seen.insert(data::Mixture(std::vector{a, b}, {1, 1}, 0, 1).fingerprint());
  seen.insert(data::Mixture(std::vector{a, b, b}, {1, 1, 1}).fingerprint());
  CHECK(seen.size() == 5);
  CHECK(data::Mixture(std::vector{a, b}, {2, 2}, 30).fingerprint() ==
        data::Mixture(std::vector{a, b}, {1, 1}).fingerprint());
}

TEST_CASE("a worker has a reader of each dataset") {
  lockstep_test::ReadByWorkers const a{Part{7, 0}}, b{Part{9, 1}};
  data::Mixture const mixture(std::vector{a, b}, {1, 3});
  auto worker = mixture.worker();
  for (Index i = 0; i < mixture.size(); ++i) CHECK(worker.get(i) == mixture.get(i));
  CHECK(*a.read + *b.read == 16);
  CHECK(*b.read > *a.read);
}

TEST_CASE("a mixture reads in place if its datasets do") {
  struct Sample {
    std::vector<int> ids;
  };
  struct Direct {
    Index first;
    Index size() const { return 5; }
    Sample get(Index i) const { return {{static_cast<int>(first + i)}}; }
    data::SampleExtent<Sample> extent(Index i) const { return {{first + i}}; }
    void read_into(Index i, data::Row<Sample> row) const { row[&Sample::ids][0] = static_cast<int>(first + i); }
  };
  data::Mixture const mixture(std::vector{Direct{10}, Direct{20}}, {1, 1});
  static_assert(data::ReadsIntoRows<std::remove_const_t<decltype(mixture)>, data::PadCollate>);
  for (Index i = 0; i < mixture.size(); ++i) CHECK(mixture.extent(i).lengths[0] == mixture.get(i).ids[0]);

  lockstep_test::ReadByWorkers const a{Direct{10}}, b{Direct{20}};
  data::Mixture const by_workers(std::vector{a, b}, {1, 1});
  data::DataLoader loader{by_workers, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 10}};
  loader.start({}, 0, 0, 1);
  auto const held = loader.next();
  for (Index row = 0; row < 10; ++row) CHECK(held.batches()[0][&Sample::ids].values(row, 0) == mixture.get(row).ids[0]);
  CHECK(*a.read + *b.read == 10);
}
