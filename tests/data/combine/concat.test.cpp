// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/combine/concat.hpp>

#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/combine/transform.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>

#include "data/read_by_workers.hpp"

using namespace lockstep;

namespace {

struct Sample {
  std::vector<int> ids;
};
struct Direct {
  Index count;
  int first;
  Index size() const { return count; }
  Sample get(Index i) const { return {{first + static_cast<int>(i)}}; }
  data::SampleExtent<Sample> extent(Index) const { return {{1}}; }
  void read_into(Index i, data::Row<Sample> row) const { row[&Sample::ids][0] = first + static_cast<int>(i); }
  std::string name(Index i) const { return "direct " + std::to_string(i); }
};
using Both = data::Concat<Direct, Direct>;
static_assert(data::ReadsIntoRows<Both, data::PadCollate>);
static_assert(!data::ReadsIntoRows<data::Concat<Direct, data::InMemoryDataset<Sample>>, data::PadCollate>);

}  // namespace

TEST_CASE("parts follow each other, including empty ones, and keep their optional members") {
  data::Concat const all{Direct{3, 10}, Direct{0, 0}, Direct{1, 20}, Direct{2, 30}};
  REQUIRE(all.size() == 6);
  std::vector<int> seen;
  for (Index i = 0; i < 6; ++i) seen.push_back(all.get(i).ids[0]);
  CHECK(seen == std::vector<int>{10, 11, 12, 20, 30, 31});
  CHECK(all.extent(5).lengths[0] == 1);
  CHECK(all.name(4) == "direct 0");
  CHECK(data::Concat{Direct{3, 10}}.get(2).ids[0] == 12);
}

TEST_CASE("a vector of datasets equals the concatenation of its elements") {
  std::vector<Direct> const shards{{3, 10}, {0, 0}, {1, 20}, {2, 30}};
  data::Concat const all{shards};
  data::Concat const listed{shards[0], shards[1], shards[2], shards[3]};
  static_assert(data::ReadsIntoRows<std::remove_const_t<decltype(all)>, data::PadCollate>);
  REQUIRE(all.size() == listed.size());
  for (Index i = 0; i < all.size(); ++i) {
    CHECK(all.get(i).ids == listed.get(i).ids);
    CHECK(all.name(i) == listed.name(i));
  }
  CHECK(all.fingerprint() == listed.fingerprint());
  data::InMemoryDataset const held{std::vector<Sample>(2)};
  data::Concat const twice{std::vector{held, held}};
  CHECK(&twice.get(3) == &held.get(1));
  CHECK(twice.name(3) == "sample 1 of dataset 1");
  CHECK_THROWS_WITH_AS(data::Concat{std::vector<Direct>{}}, doctest::Contains("the vector of datasets is empty"),
                       ConfigError);
}

TEST_CASE("a worker gets a reader from each part that makes readers") {
  data::Concat const some{Direct{2, 10}, lockstep_test::ReadByWorkers{Direct{2, 20}}};
  static_assert(data::HasWorkers<std::remove_const_t<decltype(some)>> && !data::HasWorkers<Both>);
  lockstep_test::ReadByWorkers const part{Direct{2, 30}};
  data::Concat const many{std::vector{part, part}};
  auto of_some = some.worker();
  auto of_many = many.worker();
  for (Index i = 0; i < 4; ++i) {
    CHECK(of_some.get(i).ids == some.get(i).ids);
    CHECK(of_many.get(i).ids == many.get(i).ids);
  }
  CHECK(*part.read == 4);
}

TEST_CASE("samples in memory are returned by reference, mixed kinds by value") {
  data::InMemoryDataset const a{std::vector<Sample>(2)}, b{std::vector<Sample>(3)};
  data::Concat const both{a, b};
  CHECK(&both.get(4) == &b.get(2));
  data::Concat const mixed{a, Direct{1, 7}};
  static_assert(std::is_same_v<decltype(mixed.get(0)), Sample>);
  CHECK(mixed.get(2).ids[0] == 7);
  CHECK(mixed.name(1) == "sample 1 of dataset 0");
}

TEST_CASE("the loader's workers read in place through the parts' readers") {
  lockstep_test::ReadByWorkers const part{Direct{2, 30}};
  data::Concat const many{std::vector{part, part}};
  static_assert(data::ReadsIntoRows<std::remove_const_t<decltype(many)>, data::PadCollate>);
  data::DataLoader loader{many, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 4, .workers = 2}};
  loader.start({}, 0, 0, 1);
  auto const held = loader.next();
  std::vector<int> seen;
  for (Index row = 0; row < 4; ++row) seen.push_back(held.batches()[0][&Sample::ids].values(row, 0));
  CHECK(seen == std::vector<int>{30, 31, 30, 31});
  CHECK(*part.read == 4);
}

TEST_CASE("the fingerprint changes with each part") {
  auto const print = [](Index a, Index b) { return data::Concat{Direct{a, 0}, Direct{b, 0}}.fingerprint(); };
  CHECK(print(3, 4) == print(3, 4));
  CHECK(print(3, 4) != print(4, 3));
  CHECK(print(3, 4) != print(3, 5));
}

TEST_CASE("parts that draw random numbers get the loader's key, next to parts that do not") {
  data::Transform const drawn{Direct{2, 10}, [](Sample sample, data::SampleKey const& key) {
                                sample.ids.push_back(static_cast<int>(100 * key.epoch + key.position));
                                return sample;
                              }};
  data::Concat const both{Direct{1, 0}, drawn};
  static_assert(data::DrawsSamples<std::remove_const_t<decltype(both)>>);
  static_assert(!data::DrawsSamples<Both>);
  CHECK(both.get(0, {7, 3, 4}).ids == std::vector<int>{0});
  CHECK(both.get(2, {7, 3, 4}).ids == std::vector<int>{11, 304});
}

TEST_CASE("groups of all parts are groups of the whole, and stay distinct") {
  struct Pairs {
    Index count;
    Index size() const { return count; }
    int get(Index) const { return 0; }
    Index groups() const { return (count + 1) / 2; }
    Index group(Index i) const { return i / 2; }
  };
  data::Concat const all{Pairs{4}, Pairs{0}, Pairs{3}};
  CHECK(all.groups() == 4);
  std::vector<Index> groups;
  for (Index i = 0; i < all.size(); ++i) groups.push_back(all.group(i));
  CHECK(groups == std::vector<Index>{0, 0, 1, 1, 2, 2, 3});
  static_assert(!data::GroupedDataset<data::Concat<Pairs, data::InMemoryDataset<int>>>);
}
