// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/combine/zip.hpp>

#include <cstdint>
#include <set>
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

struct Text {
  std::vector<std::int32_t> ids;
};
struct Label {
  int value = 0;
};

}  // namespace

TEST_CASE("partners are in one batch, each with its columns") {
  data::Zip const pairs{data::InMemoryDataset{std::vector<Text>{{{1, 2}}, {{3}}}},
                        data::InMemoryDataset{std::vector<Label>{{7}, {8}}}};
  CHECK(pairs.size() == 2);
  CHECK(pairs.name(1) == "sample 1 of its part with sample 1 of its part");
  using Pair = data::Zipped<Text, Label>;
  data::DataLoader loader{pairs, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 2}};
  loader.start({}, 0, 0, 1);
  auto const held = loader.next();
  auto const& batch = held.batches()[0];
  CHECK(batch[&Pair::first][&Text::ids].values(0, 1) == 2);
  CHECK(batch[&Pair::second][&Label::value].values(1) == 8);
}

TEST_CASE("the fingerprint changes with either dataset") {
  data::InMemoryDataset const a{std::vector<Label>{{1}}}, b{std::vector<Label>{{2}}};
  std::set<std::uint64_t> seen;
  for (auto const& first : {a, b})
    for (auto const& second : {a, b}) seen.insert(data::Zip{first, second}.fingerprint());
  CHECK(seen.size() == 4);
}

TEST_CASE("datasets of different lengths are refused") {
  data::InMemoryDataset const two{std::vector<Text>(2)};
  data::InMemoryDataset const three{std::vector<Label>(3)};
  CHECK_THROWS_WITH_AS((data::Zip{two, three}), doctest::Contains("2 samples and the second 3"), ConfigError);
}

TEST_CASE("partners draw equal random numbers") {
  data::Transform const drawn{data::InMemoryDataset{std::vector<Label>{{7}, {8}}},
                              [](Label const& label, data::SampleKey const& key) {
                                return Label{label.value + static_cast<int>(key.random("crop")(0)[0] % 1000)};
                              }};
  data::Zip const pairs{drawn, drawn};
  data::SampleKey const key{1, 2, 3};
  auto const [first, second] = pairs.get(1, key);
  CHECK(first.value == drawn.get(1, key).value);
  CHECK(second.value == first.value);
  CHECK(first.value != pairs.get(1, {1, 3, 3}).first.value);
  static_assert(!data::DrawsSamples<data::Zip<data::InMemoryDataset<Label>, data::InMemoryDataset<Text>>>);
}

TEST_CASE("groups are those of the first dataset that has groups") {
  struct InGroups : data::InMemoryDataset<Label> {
    using InMemoryDataset::InMemoryDataset;
    Index of_each = 1;
    Index groups() const { return 4 / of_each; }
    Index group(Index i) const { return i / of_each; }
  };
  data::InMemoryDataset const none{std::vector<Label>(4)};
  InGroups ones{std::vector<Label>(4)}, pairs{std::vector<Label>(4)};
  pairs.of_each = 2;
  CHECK(data::Zip{pairs, none}.group(3) == 1);
  CHECK(data::Zip{none, pairs}.groups() == 2);
  CHECK(data::Zip{ones, pairs}.groups() == 4);
  static_assert(!data::GroupedDataset<data::Zip<data::InMemoryDataset<Label>, data::InMemoryDataset<Label>>>);
}

TEST_CASE("a worker has a reader of each dataset that makes readers") {
  lockstep_test::ReadByWorkers const texts{data::InMemoryDataset{std::vector<Text>{{{1, 2}}, {{3}}}}};
  data::Zip const pairs{texts, data::InMemoryDataset{std::vector<Label>{{7}, {8}}}};
  static_assert(data::HasWorkers<std::remove_const_t<decltype(pairs)>>);
  auto worker = pairs.worker();
  CHECK(worker.get(1).first.ids == std::vector<std::int32_t>{3});
  CHECK(worker.get(1).second.value == 8);
  CHECK(*texts.read == 2);
}
