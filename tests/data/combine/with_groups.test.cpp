// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/combine/with_groups.hpp>

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/core/philox.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/combine/cache.hpp>
#include <lockstep/data/combine/hold_out.hpp>
#include <lockstep/data/combine/transform.hpp>

using namespace lockstep;

namespace {
struct Sample {
  std::vector<int> ids;
};
struct Direct {
  Index size() const { return 4; }
  Sample get(Index i) const { return {std::vector<int>(static_cast<std::size_t>(i), 1)}; }
  data::SampleExtent<Sample> extent(Index i) const { return {{i}}; }
  void read_into(Index i, data::Row<Sample> row) const { row[&Sample::ids][0] = static_cast<int>(i); }
  std::string name(Index i) const { return "file " + std::to_string(i); }
  std::uint64_t fingerprint() const { return 7; }
  Direct worker() const { return {}; }
};
}  // namespace

TEST_CASE("groups are numbered in the order of their keys, and replace groups of the dataset") {
  data::WithGroups const named{Direct{}, std::vector<std::string>{"eva", "adam", "eva", "noah"}};
  CHECK(named.groups() == 3);
  CHECK(named.group(0) == 1);
  CHECK(named.group(1) == 0);
  CHECK(named.group(2) == 1);
  CHECK(named.group(3) == 2);
  data::WithGroups const numbered{named, std::vector<int>{-5, 90, 90, 90}};
  CHECK(numbered.groups() == 2);
  CHECK(numbered.group(3) == 1);
  auto const parts = data::hold_out(numbered, 0.5, 1);
  CHECK((parts.training.size() == 1 || parts.training.size() == 3));
}

TEST_CASE("samples are those of the dataset, with its optional members") {
  using Grouped = data::WithGroups<Direct>;
  static_assert(data::GroupedDataset<Grouped> && data::detail::ReadsInPlace<Grouped> && data::HasWorkers<Grouped>);
  static_assert(!data::DrawsSamples<Grouped>);
  Grouped const grouped{Direct{}, std::vector<int>{0, 0, 1, 1}};
  CHECK(grouped.get(3).ids.size() == 3);
  CHECK(grouped.extent(2) == Direct{}.extent(2));
  CHECK(grouped.worker().get(2).ids.size() == 2);
  CHECK(grouped.name(1) == "file 1");
  CHECK(grouped.fingerprint() == 7);
  data::InMemoryDataset const all{std::vector<int>{1, 2, 3}};
  data::WithGroups const same{all, std::vector<int>{0, 1, 1}};
  CHECK(&same.get(1) == &all.get(1));
  data::Transform const drawn{
      same, [](int x, data::SampleKey const& key) { return x + static_cast<int>(key.random("shift")(0)[0] % 3); }};
  data::WithGroups const drawn_again{drawn, std::vector<int>{4, 4, 4}};
  static_assert(data::DrawsSamples<decltype(drawn_again)>);
  CHECK(drawn_again.get(1, {1, 2, 3}) == drawn.get(1, {1, 2, 3}));
  CHECK(drawn_again.groups() == 1);
  CHECK(data::Cache{grouped, 1000}.group(2) == 1);
}

TEST_CASE("another number of groups than of samples is refused") {
  CHECK_THROWS_WITH_AS((data::WithGroups{Direct{}, std::vector<int>{1, 2}}),
                       "WithGroups: 2 groups for 4 samples; give the group of each sample", ConfigError);
}
