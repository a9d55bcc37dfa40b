// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/combine/cache.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/core/json_value.hpp>

#include "data/read_by_workers.hpp"

using namespace lockstep;

namespace {

struct Sample {
  std::vector<std::int32_t> ids;
  std::string title;
};
struct Counting {
  std::atomic<int>* reads;
  Index size() const { return 100; }
  Sample get(Index i) const {
    ++*reads;
    return {std::vector<std::int32_t>(100, static_cast<int>(i)), std::string(64, 'x')};
  }
};
/// Memory of a sample: its ids, the characters of its title (libstdc++ allocates for exactly as many) and itself.
constexpr Index bytes_least = 400 + 64 + sizeof(Sample);

}  // namespace

TEST_CASE("samples that fit the budget are read once, all others each time") {
  std::atomic<int> reads = 0;
  data::Cache const cache{Counting{&reads}, 10 * (bytes_least + 16)};
  auto const copy = cache;
  for (int epoch = 0; epoch < 3; ++epoch)
    for (Index i = 0; i < 100; ++i) CHECK(copy.get(i).ids.at(99) == i);
  CHECK(cache.bytes_left() >= 0);
  CHECK(cache.bytes_left() < bytes_least);
  auto const kept = (300 - reads) / 2;
  CHECK(kept == 10);
}

TEST_CASE("without a budget no sample is kept, with a large one every sample is") {
  std::atomic<int> reads = 0;
  data::Cache const none{Counting{&reads}, 0}, all{Counting{&reads}, Index{1} << 30};
  for (int epoch = 0; epoch < 2; ++epoch)
    for (Index i = 0; i < 100; ++i) static_cast<void>(none.get(i));
  CHECK(reads == 200);
  for (int epoch = 0; epoch < 2; ++epoch)
    for (Index i = 0; i < 100; ++i) static_cast<void>(all.get(i));
  CHECK(reads == 300);
  CHECK_THROWS_WITH_AS((data::Cache{Counting{&reads}, -1}), doctest::Contains("budget is -1"), ConfigError);
}

TEST_CASE("a budget of exactly a sample's size keeps it, and one byte less does not") {
  std::atomic<int> reads = 0;
  constexpr Index large = Index{1} << 30;
  data::Cache const all{Counting{&reads}, large};
  static_cast<void>(all.get(7));
  auto const bytes = large - all.bytes_left();
  for (Index const missing : {0, 1}) {
    CAPTURE(missing);
    data::Cache const one{Counting{&reads}, bytes - missing};
    reads = 0;
    for (int i = 0; i < 2; ++i) static_cast<void>(one.get(7));
    CHECK(reads == 1 + missing);
    CHECK(one.bytes_left() == (missing == 0 ? 0 : bytes - 1));
  }
}

TEST_CASE("threads may request one sample at once") {
  std::atomic<int> reads = 0;
  constexpr Index budget = Index{1} << 30;
  data::Cache const cache{Counting{&reads}, budget};
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (Index i = 0; i < 100; ++i) wrong += cache.get(i).ids.at(0) != i;
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(budget - cache.bytes_left() < 100 * (bytes_least + 16));  // the second copy is not counted
}

TEST_CASE("groups are the dataset's") {
  struct Pairs {
    Index size() const { return 4; }
    int get(Index) const { return 0; }
    Index groups() const { return 2; }
    Index group(Index i) const { return i / 2; }
  };
  data::Cache const cache{Pairs{}, 100};
  CHECK(cache.groups() == 2);
  CHECK(cache.group(2) == 1);
  std::atomic<int> reads = 0;
  static_assert(!data::GroupedDataset<data::Cache<Counting>>);
  CHECK(data::Cache{Counting{&reads}, 0}.fingerprint() == data::Cache{Counting{&reads}, 100}.fingerprint());
}

TEST_CASE("extents are the dataset's, and need no read") {
  struct Direct {
    std::atomic<int>* reads;
    Index size() const { return 6; }
    Sample get(Index i) const { return ++*reads, Sample{std::vector<std::int32_t>(static_cast<std::size_t>(i)), ""}; }
    data::SampleExtent<Sample> extent(Index i) const { return {{i, 0}}; }
  };
  std::atomic<int> reads = 0;
  data::Cache const cache{Direct{&reads}, 100};
  CHECK(cache.extent(5) == data::extent_of(cache.get(5)));
  CHECK(reads == 1);
  CHECK(cache.extent(3).lengths[0] == 3);
  CHECK(reads == 1);
  static_assert(!data::detail::KnowsExtents<data::Cache<Counting>>);
}

TEST_CASE("memory of nested members counts, at any depth") {
  struct Part {
    std::string name;
    std::vector<std::byte> bytes;
  };
  struct Deep {
    std::vector<Part> parts;
    std::optional<std::vector<int>> maybe;
    std::array<std::vector<float>, 2> both;
    std::pair<std::string, json::Value> reported;
  };
  struct Source {
    Index size() const { return 2; }
    Deep get(Index i) const {
      Deep out;
      if (i == 0) return out;
      out.parts.push_back({"a part", std::vector<std::byte>(1000)});
      out.maybe.emplace(250);
      out.both[1].resize(250);
      out.reported = {std::string(1000, 'x'), json::Value(json::Array{json::Value(std::string(1000, 'y'))})};
      return out;
    }
  };
  constexpr Index budget = 1 << 20;
  auto const taken = [](Index i) {
    data::Cache const cache{Source{}, budget};
    static_cast<void>(cache.get(i));
    return budget - cache.bytes_left();
  };
  CHECK(taken(1) - taken(0) >= 5000);
  CHECK(taken(1) - taken(0) < 5500);
}

TEST_CASE("a worker's cached samples are available to other workers") {
  std::atomic<int> reads = 0;
  lockstep_test::ReadByWorkers const read{Counting{&reads}};
  data::Cache const cache{read, bytes_least + 16};
  auto worker = cache.worker(), other = cache.worker();
  CHECK(worker.get(7).ids[0] == 7);
  CHECK(other.get(7).ids[0] == 7);
  CHECK(*read.read == 1);
  CHECK(other.get(8).ids[0] == 8);
  CHECK(cache.get(7).ids[0] == 7);
  CHECK(*read.read == 2);
  CHECK(reads == 2);
}
