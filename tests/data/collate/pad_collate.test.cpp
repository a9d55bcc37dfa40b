// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/collate/pad_collate.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/core/mix.hpp>

#include "collated.hpp"

using namespace lockstep;

namespace {

using lockstep_test::everything;
using lockstep_test::Everything;
using lockstep_test::Point;
template <class Sample>
using Collated = lockstep_test::Collated<Sample, data::PadCollate>;

struct Words {
  std::vector<std::int32_t> ids;
};

}  // namespace

TEST_CASE("each kind of member becomes its column") {
  for (std::size_t rows : {1u, 2u, 31u, 32u, 33u}) {
    std::vector<Everything> samples;
    for (std::size_t r = 0; r < rows; ++r) samples.push_back(everything(static_cast<int>(r % 20), (r * 7) % 5));
    Collated<Everything> collated(samples, {.value = 9});
    auto const& batch = collated.batch;
    CHECK(batch.rows() == static_cast<Index>(rows));
    CHECK(batch.epoch() == 7);
    Index longest = 0;
    for (auto const& s : samples) longest = std::max(longest, static_cast<Index>(s.tokens.size()));
    auto const& tokens = batch[&Everything::tokens];
    auto const& track = batch[&Everything::track];
    auto const& point = batch[&Everything::point];
    CHECK(tokens.values.extent == Extents<2>{static_cast<Index>(rows), longest});
    CHECK(track.values.extent == Extents<3>{static_cast<Index>(rows), longest, 2});
    for (std::size_t r = 0; r < rows; ++r) {
      auto const row = static_cast<Index>(r);
      auto const& s = samples[r];
      auto const length = static_cast<Index>(s.tokens.size());
      CHECK(batch.positions()(row) == 100 + row);
      CHECK(tokens.lengths(row) == length);
      CHECK(track.lengths(row) == length);
      CHECK(point[&Point::trace].lengths(row) == length);
      for (Index i = 0; i < longest; ++i) {
        auto const k = static_cast<std::size_t>(i);
        CHECK(tokens.values(row, i) == (i < length ? s.tokens[k] : 9));
        CHECK(point[&Point::trace].values(row, i) == (i < length ? s.point.trace[k] : 9));
        CHECK(track.values(row, i, 0) == (i < length ? s.track[k][0] : 9.f));
        CHECK(track.values(row, i, 1) == (i < length ? s.track[k][1] : 9.f));
      }
      CHECK(batch[&Everything::label].values(row) == s.label);
      CHECK(batch[&Everything::other].values(row) == s.other);
      CHECK(batch[&Everything::title][row] == s.title);
      for (Index i = 0; i < 3; ++i)
        CHECK(batch[&Everything::position].values(row, i) == s.position[static_cast<std::size_t>(i)]);
      CHECK(batch[&Everything::score].present(row) == s.score.has_value());
      CHECK(batch[&Everything::score].values(row) == s.score.value_or(9));
      CHECK(batch[&Everything::colour].values(row) == s.colour);
      CHECK(point[&Point::x].values(row) == s.point.x);
      CHECK(batch[&Everything::flag].values(row) == s.flag);
    }
  }
}

TEST_CASE("no data of an earlier batch remain visible") {
  auto shorter = everything(2, 3);
  shorter.title.resize(9);  // the columns are at their earlier addresses
  Collated<Everything> collated({everything(1, 9), everything(3, 9)}, {.value = 2});
  collated.make({shorter, everything(4, 9)}, {.value = 2});
  auto const& batch = collated.batch;
  CHECK(!batch[&Everything::score].present(0));
  CHECK(!batch[&Everything::score].present(1));
  CHECK(batch[&Everything::score].values(1) == 2);
  CHECK(batch[&Everything::tokens].values(0, 3) == 2);
  CHECK(batch[&Everything::track].values(0, 8, 1) == 2);
}

TEST_CASE("a batch without rows has all columns, empty") {
  Collated<Everything> collated({});
  CHECK(collated.batch.rows() == 0);
  CHECK(collated.batch[&Everything::tokens].values.size() == 0);
  CHECK(collated.batch[&Everything::title].offsets(0) == 0);
  CHECK(collated.batch[&Everything::point][&Point::trace].values.size() == 0);
}

TEST_CASE("columns are aligned to 64 bytes") {
  Collated<Everything> collated({everything(1, 3), everything(2, 5)});
  auto const aligned = [](void const* p) { return reinterpret_cast<std::uintptr_t>(p) % 64 == 0; };
  CHECK(aligned(collated.batch[&Everything::tokens].values.data));
  CHECK(aligned(collated.batch[&Everything::label].values.data));
  CHECK(aligned(collated.batch[&Everything::title].characters.data));
  CHECK(aligned(collated.batch[&Everything::flag].values.data));
}

TEST_CASE("a slab stops growing after the largest batch") {
  std::vector<Everything> large, small;
  for (int i = 0; i < 20; ++i) large.push_back(everything(i, 20000));
  for (int i = 0; i < 20; ++i) small.push_back(everything(i, 7));
  Collated<Everything> collated(large);
  collated.make(large);
  auto const capacity = collated.slab.capacity_bytes();
  for (int i = 0; i < 5; ++i) {
    collated.make(small);
    collated.make(large);
  }
  CHECK(collated.slab.capacity_bytes() == capacity);
}

TEST_CASE("a padding value that the element type cannot hold is refused") {
  CHECK_THROWS_WITH_AS(Collated<Everything>({everything(1, 1)}, {.value = 0.5}), doctest::Contains("padding value 0.5"),
                       ConfigError);
  // the trace consists of bytes
  CHECK_THROWS_AS(Collated<Everything>({everything(1, 1)}, {.value = 256}), ConfigError);
  CHECK_THROWS_AS(Collated<Everything>({everything(1, 1)}, {.value = -1}), ConfigError);
  CHECK_NOTHROW(Collated<Everything>({everything(1, 1)}, {.value = 255}));
}

TEST_CASE("a sample whose length differs from its announced one is refused") {
  std::vector<data::SampleExtent<Words>> const extents{{{2}}};
  std::vector<Index> const positions{0};
  data::Slab slab;
  data::PadCollate const collate;
  auto const batch = collate.plan(data::BatchPlan<Words>{extents, positions, 0}, slab);
  CHECK_THROWS_WITH_AS(collate.row(batch, 0, Words{{1, 2, 3}}),
                       doctest::Contains("length 3, but length 2 was declared"), DataError);
  CHECK_THROWS_WITH_AS(collate.row(batch, 0, Words{{1}}), doctest::Contains("length 1, but length 2 was declared"),
                       DataError);
}

TEST_CASE("texts keep their announced length, and an optional member's padding is refused before any row is written") {
  struct Note {
    std::string text;
    std::optional<int> mark;
  };
  std::vector<data::SampleExtent<Note>> const extents{{{2}}};
  std::vector<Index> const positions{0};
  data::Slab slab;
  data::BatchPlan<Note> const plan{extents, positions, 0};
  auto const batch = data::PadCollate{}.plan(plan, slab);
  CHECK_THROWS_WITH_AS(data::PadCollate{}.row(batch, 0, Note{"abc", {}}),
                       doctest::Contains("length 3, but length 2 was declared"), DataError);
  CHECK_THROWS_AS(static_cast<void>(data::PadCollate{.value = 0.5}.plan(plan, slab)), ConfigError);
}

TEST_CASE("rows have the requested length") {
  std::vector<Words> const samples{{{1, 2, 3}}, {{}}, {{4, 5, 6, 7, 8}}};
  auto const length = [&](data::PadCollate collate) {
    return Collated<Words>(samples, collate).batch[&Words::ids].values.extent[1];
  };
  CHECK(length({}) == 5);
  CHECK(length({.multiple = 5}) == 5);
  CHECK(length({.multiple = 4}) == 8);
  CHECK(length({.multiple = 8}) == 8);
  CHECK(length({.length = 5}) == 5);
  CHECK(length({.multiple = 3, .length = 9}) == 9);
  CHECK(Collated<Words>({{{}}}, {.multiple = 8}).batch[&Words::ids].values.extent[1] == 0);
  CHECK(Collated<Words>({{{}}}, {.length = 8}).batch[&Words::ids].values.extent[1] == 8);
  CHECK_THROWS_WITH_AS(length({.length = 4}),
                       doctest::Contains("the sample in row 2 has length 5, and rows are padded to 4"), DataError);
  CHECK_THROWS_WITH_AS(length({.multiple = 0}), doctest::Contains("multiple is 0"), ConfigError);
  CHECK_THROWS_WITH_AS(length({.multiple = Index{1} << 62}), doctest::Contains("below 2^31"), ConfigError);
  CHECK_THROWS_WITH_AS(length({.length = Index{1} << 62}), doctest::Contains("below 2^31"), ConfigError);
  CHECK_THROWS_WITH_AS(length({.length = -1}), doctest::Contains("length is -1"), ConfigError);
  CHECK_THROWS_WITH_AS(length({.multiple = 4, .length = 6}), doctest::Contains("length is 6"), ConfigError);
}

TEST_CASE("buckets are multiples of 8 up to 64, of 16 up to 128 and so on, and end at the largest") {
  auto const length = [](Index longest, data::PadCollate collate) {
    return Collated<Words>({{std::vector<std::int32_t>(static_cast<std::size_t>(longest), 1)}, {{}}}, collate)
        .batch[&Words::ids]
        .values.extent[1];
  };
  std::vector<Index> found;
  for (Index longest = 0; longest <= 300; ++longest) {
    auto const bucket = length(longest, {.largest_bucket = 256});
    CHECK(bucket >= longest);
    CHECK(bucket < longest + std::max<Index>(8, longest / 4 + 1));
    if (longest <= 256 && (found.empty() || found.back() != bucket)) found.push_back(bucket);
    if (longest > 256) CHECK(bucket == longest);
  }
  CHECK(found == std::vector<Index>{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256});
  CHECK(length(65, {.largest_bucket = 70}) == 70);
  CHECK(length(65, {.largest_bucket = 64}) == 65);
  CHECK(length(9, {.multiple = 5, .largest_bucket = 64}) == 20);
  CHECK(length(9, {.length = 12, .largest_bucket = 64}) == 12);
  for (auto const& collate : {data::PadCollate{.largest_bucket = 70}, data::PadCollate{.length = 12},
                              data::PadCollate{.multiple = 5, .largest_bucket = 64}})
    CHECK(collate.padded(data::SampleExtent<std::string>{{9}}).lengths[0] == length(9, collate));
  CHECK_THROWS_WITH_AS(length(1, {.largest_bucket = -1}), doctest::Contains("largest_bucket is -1"), ConfigError);
}

TEST_CASE("padding is at either side, and a mask marks it") {
  std::vector<Words> const samples{{{1, 2}}, {{}}, {{3, 4, 5}}};
  for (auto side : {data::Side::end, data::Side::start}) {
    Collated<Words> collated(samples, {.value = 9, .side = side, .mask = data::Mask::build});
    auto const& ids = collated.batch[&Words::ids];
    CHECK(ids.side == side);
    REQUIRE(ids.mask.extent == Extents<2>{3, 3});
    auto const values = side == data::Side::end ? std::vector<std::int32_t>{1, 2, 9, 9, 9, 9, 3, 4, 5}
                                                : std::vector<std::int32_t>{9, 1, 2, 9, 9, 9, 3, 4, 5};
    for (std::size_t i = 0; i < values.size(); ++i) {
      CHECK(ids.values.data[i] == values[i]);
      CHECK(ids.mask.data[i] == (values[i] != 9));
    }
  }
  CHECK(Collated<Words>(samples).batch[&Words::ids].mask.data == nullptr);
}

TEST_CASE("rows with several numbers per element can be padded at the start, too") {
  Collated<Everything> collated({everything(1, 2), everything(2, 4)}, {.value = 9, .side = data::Side::start});
  auto const& track = collated.batch[&Everything::track].values;
  CHECK(track(0, 1, 1) == 9);
  CHECK(track(0, 2, 0) == 1);
  CHECK(track(0, 3, 1) == 1);
  CHECK(track(1, 0, 0) == 2);
}

TEST_CASE("the segment plan of ids leaves out padding and numbers the ids' slots") {
  std::vector<Words> const samples{{{7, 3}}, {{}}, {{3, 0, 7}}};
  for (auto side : {data::Side::end, data::Side::start}) {
    Collated<Words> collated(samples, {.side = side, .segment_plans = data::SegmentPlans::build});
    auto const* plan = collated.batch[&Words::ids].plan;
    REQUIRE(plan != nullptr);
    CHECK(plan->rows == std::vector<std::int32_t>{0, 3, 7});
    CHECK(plan->order == (side == data::Side::end ? std::vector<std::uint32_t>{7, 1, 6, 0, 8}
                                                  : std::vector<std::uint32_t>{7, 2, 6, 1, 8}));
    collated.make({{{5}}}, {.segment_plans = data::SegmentPlans::build});
    CHECK(collated.batch[&Words::ids].plan == plan);  // its storage is used again
    CHECK(plan->rows == std::vector<std::int32_t>{5});
    collated.make({}, {.segment_plans = data::SegmentPlans::build});
    CHECK(plan->rows.empty());
    collated.make(samples);
    CHECK(collated.batch[&Words::ids].plan == nullptr);
  }
}

namespace {

struct Wide {
  std::vector<std::array<float, 512>> frames;  // long enough for rows whose zeros are known
};

}  // namespace

TEST_CASE("padding is correct whatever earlier batches left in the memory") {
  Collated<Wide> collated({Wide{}});
  std::uint64_t drawn = 0;
  auto const draw = [&](std::uint64_t below) { return static_cast<std::size_t>(mix(11, drawn++) % below); };
  for (int round = 0; round < 60; ++round) {
    std::vector<Wide> samples(1 + draw(6));
    for (auto& sample : samples) {
      sample.frames.resize(draw(round < 30 ? 5 : 9));
      for (auto& frame : sample.frames) frame.fill(static_cast<float>(1 + drawn));
    }
    auto const value = draw(5) == 0 ? 7.0 : draw(5) == 0 ? -0.0 : 0.0;
    auto const side = draw(3) == 0 ? data::Side::start : data::Side::end;
    collated.make(samples, {.value = value, .side = side});
    auto const& frames = collated.batch[&Wide::frames];
    auto const length = frames.values.extent[1];
    int wrong = 0;
    for (Index row = 0; row < frames.values.extent[0]; ++row) {
      auto const& sample = samples[static_cast<std::size_t>(row)].frames;
      auto const used = static_cast<Index>(sample.size()), first = side == data::Side::end ? 0 : length - used;
      for (Index i = 0; i < length; ++i) {
        bool const padding = i < first || i >= first + used;
        auto const wanted = padding ? static_cast<float>(value) : sample[static_cast<std::size_t>(i - first)][0];
        for (Index k = 0; k < 512; ++k) {
          auto const found = frames.values(row, i, k);
          wrong += found != wanted || std::signbit(found) != std::signbit(wanted) ? 1 : 0;
        }
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("rows are padded concurrently") {
  data::PadCollate const collate;
  std::vector<Wide> samples(8);
  data::Slab slab;
  for (std::size_t round = 0; round < 6; ++round) {
    std::vector<data::SampleExtent<Wide>> extents;
    std::vector<Index> positions;
    for (std::size_t row = 0; row < samples.size(); ++row) {
      samples[row].frames.assign((row * 5 + round * 3) % 7, {});
      for (auto& frame : samples[row].frames) frame.fill(1);
      extents.push_back(data::extent_of(samples[row]));
      positions.push_back(static_cast<Index>(row));
    }
    auto const batch = collate.plan(data::BatchPlan<Wide>{extents, positions, 0}, slab);
    auto const write = [&](std::size_t first) {
      for (auto row = first; row < samples.size(); row += 2) collate.row(batch, static_cast<Index>(row), samples[row]);
    };
    std::thread other(write, 1);
    write(0);
    other.join();
    auto const& values = batch[&Wide::frames].values;
    auto const sum = std::accumulate(values.data, values.data + values.size(), 0.0);
    std::size_t frames = 0;
    for (auto const& sample : samples) frames += sample.frames.size();
    CHECK(sum == 512.0 * static_cast<double>(frames));
  }
}

TEST_CASE("columns with remembered padding are independent, and an earlier mask is overwritten") {
  struct Two {
    std::vector<float> a;
    std::vector<std::array<float, 2>> b;
  };
  Collated<Two> collated({Two{}});
  for (std::size_t round = 0; round < 12; ++round) {
    std::vector<Two> samples(3);
    for (std::size_t r = 0; r < 3; ++r) {
      samples[r].a.assign(1500 + (round * 7 + r * 311) % 977, 1);
      samples[r].b.assign(1500 + (round * 13 + r * 577) % 983, {1, 1});
    }
    auto const side = round % 3 == 0 ? data::Side::start : data::Side::end;
    collated.make(samples, {.side = side, .mask = data::Mask::build});
    auto const check = [&](auto const& column, auto member, Index width) {
      auto const length = column.values.extent[1];
      Index wrong = 0;
      for (Index row = 0; row < 3; ++row) {
        auto const used = static_cast<Index>((samples[static_cast<std::size_t>(row)].*member).size());
        auto const first = side == data::Side::start ? length - used : 0;
        for (Index i = 0; i < length; ++i) {
          bool const there = i >= first && i < first + used;
          wrong += column.mask(row, i) != there;
          for (Index k = 0; k < width; ++k)
            wrong += column.values.data[(row * length + i) * width + k] != (there ? 1.f : 0.f);
        }
      }
      CHECK(wrong == 0);
    };
    check(collated.batch[&Two::a], &Two::a, 1);
    check(collated.batch[&Two::b], &Two::b, 2);
  }
}
