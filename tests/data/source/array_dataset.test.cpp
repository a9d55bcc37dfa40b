// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/array_dataset.hpp>

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/data/data_loader.hpp>
#include <lockstep/data/pad_collate.hpp>
#include <lockstep/data/ragged_collate.hpp>
#include <lockstep/data/shuffled_sampler.hpp>
#include <lockstep/data/source/open_raw.hpp>

#include "../../temporary_folder.hpp"
#include "array_files.hpp"

using namespace lockstep;
using namespace lockstep_test;
using data::ArrayMember;

namespace {

struct Sample {
  std::vector<std::uint8_t> image;
  std::array<float, 2> centre{};
  std::vector<std::array<std::int16_t, 2>> track;
  std::int64_t label = 0;
};
constexpr Index rows = 13;

template <class T>
data::FileArray numbers(TemporaryFolder const& folder, std::string const& name, Index width) {
  std::vector<T> values;
  for (Index i = 0; i < rows * width; ++i) values.push_back(static_cast<T>(i));
  write_file(folder / name, bytes_of(values));
  return data::open_raw<T>(folder / name, {width});
}
auto dataset(TemporaryFolder const& folder) {
  return data::ArrayDataset{ArrayMember{&Sample::label, numbers<std::int64_t>(folder, "label", 1)},
                            ArrayMember{&Sample::image, numbers<std::uint8_t>(folder, "image", 5)},
                            ArrayMember{&Sample::centre, numbers<float>(folder, "centre", 2)},
                            ArrayMember{&Sample::track, numbers<std::int16_t>(folder, "track", 6)}};
}
using Dataset = decltype(dataset(std::declval<TemporaryFolder const&>()));
static_assert(data::ReadsIntoRows<Dataset, data::PadCollate> && data::ReadsIntoRows<Dataset, data::RaggedCollate>);
static_assert(data::NamesSamples<Dataset> && data::HasFingerprint<Dataset>);

}  // namespace

TEST_CASE("a sample is a row of each array, read into the batch or alone") {
  TemporaryFolder const folder;
  auto const samples = dataset(folder);
  CHECK(samples.size() == rows);
  auto const sample = samples.get(4);
  CHECK(sample.image == std::vector<std::uint8_t>{20, 21, 22, 23, 24});
  CHECK(sample.centre == std::array<float, 2>{8, 9});
  CHECK(sample.track == std::vector<std::array<std::int16_t, 2>>{{24, 25}, {26, 27}, {28, 29}});
  CHECK(sample.label == 4);
  CHECK(samples.name(4) == "row 4 of " + folder / "label");

  data::DataLoader loader{samples, data::ShuffledSampler{}, data::PadCollate{}, {.batch_size = 4}};
  loader.start({}, 0, 0, 1);
  for (int step = 0; step < 4; ++step) {
    auto const held = loader.next();
    auto const& batch = held.batches()[0];
    for (Index r = 0; r < batch.rows(); ++r) {
      auto const i = batch[&Sample::label].values(r);
      CHECK(batch[&Sample::image].values(r, 4) == i * 5 + 4);
      CHECK(batch[&Sample::centre].values(r, 1) == static_cast<float>(i * 2 + 1));
      CHECK(batch[&Sample::track].values(r, 2, 1) == i * 6 + 5);
    }
  }
}

TEST_CASE("arrays that do not fit the sample or each other are refused") {
  TemporaryFolder const folder;
  struct Pair {
    std::array<float, 2> a{};
    std::vector<std::array<float, 2>> b;
  };
  auto const two = numbers<float>(folder, "two", 2), three = numbers<float>(folder, "three", 3);
  auto const twos = numbers<double>(folder, "twos", 2);
  write_file(folder / "short", bytes_of(std::vector<float>(4)));
  auto const make = [](data::FileArray const& a, data::FileArray const& b) {
    return data::ArrayDataset{ArrayMember{&Pair::a, a}, ArrayMember{&Pair::b, b}}.size();
  };
  CHECK(make(two, two) == rows);
  CHECK_THROWS_WITH_AS(make(three, two), doctest::Contains("rows of 3 numbers [13, 3], and member 0"), DataError);
  CHECK_THROWS_WITH_AS(make(two, three), doctest::Contains("rows of 3 numbers"), DataError);
  CHECK_THROWS_WITH_AS(make(two, twos), doctest::Contains("holds float64, and member 1"), DataError);
  CHECK_THROWS_WITH_AS(make(two, data::open_raw<float>(folder / "short", {2})), doctest::Contains("has 2 rows"),
                       DataError);
  CHECK_THROWS_WITH_AS((data::ArrayDataset{ArrayMember{&Pair::a, two}, ArrayMember{&Pair::a, two}}),
                       doctest::Contains("member 1 of ArrayDataset is bound twice"), ConfigError);
}

TEST_CASE("a file shortened while training fails at the batch that needs the rest, by name") {
  TemporaryFolder const folder;
  data::DataLoader loader{dataset(folder), data::ShuffledSampler{}, data::PadCollate{}, {.batch_size = rows}};
  std::filesystem::resize_file(folder / "centre", 12);
  loader.start({}, 0, 0, 1);
  CHECK_THROWS_WITH_AS(static_cast<void>(loader.next()), doctest::Contains("centre: ends at byte 12"), DataError);
}
