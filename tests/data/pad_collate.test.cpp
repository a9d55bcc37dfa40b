// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/pad_collate.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {

enum class Colour : std::uint8_t { red, green };
struct Point {
  float x = 0;
  std::vector<std::uint8_t> trace;
};
struct Everything {
  std::vector<std::int32_t> tokens;
  int label = 0;
  std::string title;
  std::array<double, 3> position{};
  std::optional<float> score;
  Colour colour = Colour::red;
  Point point;
  std::vector<std::array<float, 2>> track;
  bool flag = false;
  int other = 0;
};

template <class Sample>
struct Collated {
  memory::Scratch<> slab;
  std::vector<data::SampleExtent<Sample>> extents;
  std::vector<Index> positions;
  data::Columns<Sample> batch;

  Collated(std::vector<Sample> const& samples, data::PadCollate collate = {}) { make(samples, collate); }
  void make(std::vector<Sample> const& samples, data::PadCollate collate = {}) {
    extents.clear();
    positions.clear();
    for (auto const& sample : samples) extents.push_back(data::extent_of(sample));
    for (std::size_t i = 0; i < samples.size(); ++i) positions.push_back(static_cast<Index>(100 + i));
    batch = collate.plan(data::BatchPlan<Sample>{extents, positions, 7}, slab);
    for (std::size_t i = 0; i < samples.size(); ++i) collate.row(batch, static_cast<Index>(i), samples[i]);
  }
};

Everything sample(int seed, std::size_t length) {
  Everything s;
  for (std::size_t i = 0; i < length; ++i) {
    s.tokens.push_back(seed * 100 + static_cast<int>(i));
    s.point.trace.push_back(static_cast<std::uint8_t>(seed + 1));
    s.track.push_back({static_cast<float>(seed), static_cast<float>(i)});
  }
  s.label = seed;
  s.title = std::string(length, static_cast<char>('a' + seed));
  s.position = {1.0 * seed, 2.0 * seed, 3.0 * seed};
  if (seed % 2) s.score = static_cast<float>(seed);
  s.colour = seed % 2 ? Colour::green : Colour::red;
  s.point.x = static_cast<float>(seed) / 2;
  s.flag = seed % 2 == 1;
  s.other = -seed;
  return s;
}

}  // namespace

TEST_CASE("every kind of member becomes its column") {
  for (std::size_t rows : {1u, 2u, 31u, 32u, 33u}) {
    std::vector<Everything> samples;
    for (std::size_t r = 0; r < rows; ++r) samples.push_back(sample(static_cast<int>(r % 20), (r * 7) % 5));
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

TEST_CASE("nothing of an earlier batch shows through") {
  auto shorter = sample(2, 3);
  shorter.title.resize(9);  // the columns lie where they lay before
  Collated<Everything> collated({sample(1, 9), sample(3, 9)}, {.value = 2});
  collated.make({shorter, sample(4, 9)}, {.value = 2});
  auto const& batch = collated.batch;
  CHECK(!batch[&Everything::score].present(0));
  CHECK(!batch[&Everything::score].present(1));
  CHECK(batch[&Everything::score].values(1) == 2);
  CHECK(batch[&Everything::tokens].values(0, 3) == 2);
  CHECK(batch[&Everything::track].values(0, 8, 1) == 2);
}

TEST_CASE("a batch without rows has all its columns, empty") {
  Collated<Everything> collated({});
  CHECK(collated.batch.rows() == 0);
  CHECK(collated.batch[&Everything::tokens].values.size() == 0);
  CHECK(collated.batch[&Everything::title].offsets(0) == 0);
  CHECK(collated.batch[&Everything::point][&Point::trace].values.size() == 0);
}

TEST_CASE("columns are aligned to 64 bytes") {
  Collated<Everything> collated({sample(1, 3), sample(2, 5)});
  auto const aligned = [](void const* p) { return reinterpret_cast<std::uintptr_t>(p) % 64 == 0; };
  CHECK(aligned(collated.batch[&Everything::tokens].values.data));
  CHECK(aligned(collated.batch[&Everything::label].values.data));
  CHECK(aligned(collated.batch[&Everything::title].characters.data));
  CHECK(aligned(collated.batch[&Everything::flag].values.data));
}

TEST_CASE("the slab stops growing once the largest batch was seen") {
  std::vector<Everything> large, small;
  for (int i = 0; i < 20; ++i) large.push_back(sample(i, 20000));
  for (int i = 0; i < 20; ++i) small.push_back(sample(i, 7));
  Collated<Everything> collated(large);
  collated.make(large);
  auto const capacity = collated.slab.capacity_bytes();
  for (int i = 0; i < 5; ++i) {
    collated.make(small);
    collated.make(large);
  }
  CHECK(collated.slab.capacity_bytes() == capacity);
}

TEST_CASE("a padding value that the elements cannot hold is refused") {
  CHECK_THROWS_WITH_AS(Collated<Everything>({sample(1, 1)}, {.value = 0.5}),
                       doctest::Contains("padding value 0.500000"), ConfigError);
  CHECK_THROWS_AS(Collated<Everything>({sample(1, 1)}, {.value = 256}), ConfigError);  // the trace is of bytes
  CHECK_THROWS_AS(Collated<Everything>({sample(1, 1)}, {.value = -1}), ConfigError);
  CHECK_NOTHROW(Collated<Everything>({sample(1, 1)}, {.value = 255}));
}

TEST_CASE("a sample whose length is not the announced one is refused") {
  struct Words {
    std::vector<int> ids;
  };
  std::vector<data::SampleExtent<Words>> const extents{{{2}}};
  std::vector<Index> const positions{0};
  memory::Scratch<> slab;
  data::PadCollate const collate;
  auto const batch = collate.plan(data::BatchPlan<Words>{extents, positions, 0}, slab);
  CHECK_THROWS_WITH_AS(collate.row(batch, 0, Words{{1, 2, 3}}), doctest::Contains("length 3 where 2 was announced"),
                       DataError);
}
