// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/row.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/data/collate/pad_collate.hpp>

using namespace lockstep;

namespace {

struct Inner {
  float x = 0;
};
struct Sample {
  std::vector<std::int32_t> tokens;
  int label = 0;
  std::string title;
  std::array<double, 3> position{};
  std::optional<float> score;
  Inner inner;
  std::vector<std::array<float, 2>> track;
};

}  // namespace

TEST_CASE("a row can be written member by member, without changing its padding and adjacent rows") {
  std::vector<data::SampleExtent<Sample>> const extents{{{4, 0, 2}}, {{2, 3, 1}}};
  std::vector<Index> const positions{0, 1};
  data::Slab slab;
  data::PadCollate const collate{.value = 5};
  auto const batch = collate.plan(data::BatchPlan<Sample>{extents, positions, 0}, slab);
  auto const other = collate.open_row(batch, 0);
  for (auto& token : other[&Sample::tokens]) token = 9;
  auto const row = collate.open_row(batch, 1);
  static_assert(std::is_same_v<decltype(row[&Sample::label]), int&>);

  REQUIRE(row[&Sample::tokens].size() == 2);
  row[&Sample::tokens][0] = 11;
  row[&Sample::tokens][1] = 12;
  row[&Sample::label] = 3;
  REQUIRE(row[&Sample::title].size() == 3);
  std::string("abc").copy(row[&Sample::title].data(), 3);
  row[&Sample::position][2] = 4;
  row[&Sample::inner][&Inner::x] = 8;
  REQUIRE(row[&Sample::track].size() == 2);
  row[&Sample::track][1] = 6;

  auto const& tokens = batch[&Sample::tokens].values;
  CHECK(std::vector<int>(tokens.data, tokens.data + 8) == std::vector<int>{9, 9, 9, 9, 11, 12, 5, 5});
  CHECK(batch[&Sample::label].values(1) == 3);
  CHECK(batch[&Sample::title][1] == "abc");
  CHECK(batch[&Sample::title][0].empty());
  CHECK(batch[&Sample::position].values(1, 2) == 4);
  CHECK(batch[&Sample::inner][&Inner::x].values(1) == 8);
  CHECK(batch[&Sample::track].values(1, 0, 1) == 6);
  CHECK(batch[&Sample::track].values(1, 1, 1) == 5);

  CHECK(!batch[&Sample::score].present(1));
  CHECK(batch[&Sample::score].values(1) == 5);
  row[&Sample::score].value = 2;
  row[&Sample::score].present = true;
  CHECK(batch[&Sample::score].present(1));
  CHECK(batch[&Sample::score].values(1) == 2);
  CHECK(!batch[&Sample::score].present(0));
}
