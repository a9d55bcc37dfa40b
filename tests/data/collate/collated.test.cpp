// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/collate/collated.hpp>

#include <doctest/doctest.h>

#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/collate/ragged_collate.hpp>

using namespace lockstep;

namespace {
struct Text {
  std::vector<std::int32_t> ids;
  int label;
};
std::vector<Text> const texts{{{1, 2, 3}, 7}, {{}, 8}, {{4}, 9}};
}  // namespace

TEST_CASE("samples become a batch, in their order") {
  data::Collated const collated{data::PadCollate{}, texts};
  auto const& batch = collated.batch();
  CHECK(batch.rows() == 3);
  CHECK(batch[&Text::ids].values.extent == Extents<2>{3, 3});
  CHECK(batch[&Text::ids].values(0, 2) == 3);
  CHECK(batch[&Text::ids].values(2, 0) == 4);
  CHECK(batch[&Text::ids].lengths(1) == 0);
  CHECK(batch[&Text::label].values(1) == 8);
  for (Index row = 0; row < 3; ++row) CHECK(batch.positions()(row) == row);
}

TEST_CASE("positions begin at a given number, so that batches made in several places differ") {
  data::Collated const second{data::PadCollate{}, texts, 100};
  for (Index row = 0; row < 3; ++row) CHECK(second.batch().positions()(row) == 100 + row);
}

TEST_CASE("any collate works: ragged batches, and segment plans that are made after all rows are written") {
  data::Collated const ragged{data::RaggedCollate{}, texts};
  CHECK(ragged.batch()[&Text::ids].offsets(3) == 4);
  data::Collated const planned{data::PadCollate{.segment_plans = data::SegmentPlans::build}, texts};
  REQUIRE(planned.batch()[&Text::ids].plan != nullptr);
  CHECK(planned.batch()[&Text::ids].plan->rows.size() == 4);
}

TEST_CASE("assigned samples replace those of the batch, of any number and length") {
  data::Collated collated{data::PadCollate{.segment_plans = data::SegmentPlans::build}, texts};
  auto const& batch = collated.batch();
  for (int repeat = 0; repeat < 3; ++repeat) {
    collated.assign(Text{{5, 6, 7, 8, 9}, 3}, 40);
    CHECK(batch.rows() == 1);
    CHECK(batch[&Text::ids].values.extent == Extents<2>{1, 5});
    CHECK(batch[&Text::ids].values(0, 4) == 9);
    CHECK(batch[&Text::label].values(0) == 3);
    CHECK(batch.positions()(0) == 40);
    collated.assign(texts);
    data::Collated const made{data::PadCollate{}, texts};
    REQUIRE(batch.rows() == 3);
    CHECK(std::ranges::equal(batch[&Text::ids].values.span(), made.batch()[&Text::ids].values.span()));
    CHECK(std::ranges::equal(batch[&Text::label].values.span(), made.batch()[&Text::label].values.span()));
    CHECK(batch[&Text::ids].plan->rows.size() == 4);
    for (Index row = 0; row < 3; ++row) CHECK(batch.positions()(row) == row);
    collated.assign(std::span<Text const>{});
    CHECK(batch.rows() == 0);
  }
}

TEST_CASE("after an error the batch has no rows, and takes other samples") {
  data::Collated collated{data::PadCollate{.length = 3}, texts};
  CHECK_THROWS_AS(collated.assign(Text{{1, 2, 3, 4}, 7}), DataError);
  CHECK(collated.batch().rows() == 0);
  collated.assign(texts[0]);
  CHECK(collated.batch()[&Text::ids].values(0, 2) == 3);
}

TEST_CASE("a batch without values in its samples takes samples") {
  data::Collated collated{data::PadCollate{}, std::vector<data::SampleExtent<Text>>{{{2}}}};
  CHECK(collated.batch()[&Text::ids].values.extent == Extents<2>{1, 2});
  collated.assign(texts[0]);
  CHECK(collated.batch()[&Text::ids].values(0, 2) == 3);
}

TEST_CASE("without samples, the batch has no rows") {
  data::Collated const none{data::PadCollate{}, std::vector<Text>{}};
  CHECK(none.batch().rows() == 0);
}

TEST_CASE("a batch keeps its address when its owner moves") {
  data::Collated from{data::PadCollate{}, texts};
  auto const to = std::move(from);
  CHECK(to.batch()[&Text::label].values(2) == 9);
  CHECK(to.batch().positions()(2) == 2);
}

TEST_CASE("a few samples take little memory, because all of a slab's memory is cleared") {
  auto const in_use = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  auto const before = in_use();
  data::Collated const few{data::PadCollate{}, texts};
  CHECK(in_use() < before + 65536);
  data::Collated const many{data::PadCollate{}, std::vector<Text>(2000, texts[0])};
  CHECK(many.batch()[&Text::ids].values(1999, 2) == 3);
}
