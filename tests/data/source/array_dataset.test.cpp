// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/array_dataset.hpp>

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/collate/ragged_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
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

TEST_CASE("a file of float16 fills float members, in a batch and in a single sample") {
  TemporaryFolder const folder;
  write_file(folder / "h", bytes_of(std::vector<std::uint16_t>{0x3c00, 0x4000, 0x4200, 0x4400}));  // 1, 2, 3, 4
  auto const file = std::make_shared<data::detail::DataFile const>(folder / "h");
  data::FileArray const array(file, {'f', 2}, {2, 2}, 0);
  struct Mixed {
    std::array<float, 2> pair;
    std::vector<float> some;
    std::vector<std::array<double, 2>> pairs;
  };
  data::ArrayDataset const samples{ArrayMember{&Mixed::pair, array}, ArrayMember{&Mixed::some, array},
                                   ArrayMember{&Mixed::pairs, array}};
  auto const second = samples.get(1);
  CHECK(second.pair == std::array<float, 2>{3, 4});
  CHECK(second.some == std::vector<float>{3, 4});
  CHECK(second.pairs == std::vector<std::array<double, 2>>{{3, 4}});
  data::DataLoader loader{samples, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 2}};
  loader.start({}, 0, 0, 1);
  auto const held = loader.next();
  auto const& batch = held.batches()[0];
  CHECK(batch[&Mixed::pair].values(1, 1) == 4);
  CHECK(batch[&Mixed::some].values(0, 1) == 2);
  CHECK(batch[&Mixed::pairs].values(1, 0, 0) == 3);
}

TEST_CASE("windows of a file of bytes fill members of tokens, the second one byte later") {
  struct Piece {
    std::vector<std::int32_t> tokens, next;
  };
  using data::RowRanges;
  TemporaryFolder const folder;
  write_file(folder / "text", "the cat sat on the mat\xff");
  auto const text = data::open_raw<std::uint8_t>(folder / "text", {1});
  data::ArrayDataset const pieces{
      ArrayMember{&Piece::tokens, text, RowRanges::windows({.length = 4, .stride = 3, .end = 22})},
      ArrayMember{&Piece::next, text, RowRanges::windows({.length = 4, .stride = 3, .first = 1, .end = 23})}};
  REQUIRE(pieces.size() == 7);
  CHECK(pieces.get(1).tokens == std::vector<std::int32_t>{' ', 'c', 'a', 't'});
  CHECK(pieces.get(6).next == std::vector<std::int32_t>{'m', 'a', 't', 255});
  data::DataLoader padded{pieces, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 7}};
  data::DataLoader ragged{pieces, data::SequentialSampler{}, data::RaggedCollate{}, {.batch_size = 7}};
  auto const check = [&](auto& loader) {
    loader.start({}, 0, 0, 1);
    auto const held = loader.next();
    auto const& batch = held.batches()[0];
    for (Index row = 0; row < 7; ++row) {
      auto const tokens = batch[&Piece::tokens][row], next = batch[&Piece::next][row];
      CHECK(std::vector<std::int32_t>(tokens.begin(), tokens.end()) == pieces.get(row).tokens);
      CHECK(std::vector<std::int32_t>(next.begin(), next.end()) == pieces.get(row).next);
    }
  };
  check(padded);
  check(ragged);
}

TEST_CASE("a sample is one row of each array, read into a batch or alone") {
  TemporaryFolder const folder;
  auto const samples = dataset(folder);
  CHECK(samples.size() == rows);
  auto const sample = samples.get(4);
  CHECK(sample.image == std::vector<std::uint8_t>{20, 21, 22, 23, 24});
  CHECK(sample.centre == std::array<float, 2>{8, 9});
  CHECK(sample.track == std::vector<std::array<std::int16_t, 2>>{{24, 25}, {26, 27}, {28, 29}});
  CHECK(sample.label == 4);
  CHECK(samples.name(4) ==
        "row 4 of " + folder / "label" + ", " + folder / "image" + ", " + folder / "centre" + ", " + folder / "track");

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

TEST_CASE("arrays that fit neither the sample type nor each other are refused") {
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
  CHECK_THROWS_WITH_AS(make(three, two), doctest::Contains("rows of 3 numbers [13, 3], but member 0"), DataError);
  CHECK_THROWS_WITH_AS(make(two, three), doctest::Contains("rows of 3 numbers"), DataError);
  CHECK_THROWS_WITH_AS(make(two, twos), doctest::Contains("holds float64, but member 1"), DataError);
  CHECK_THROWS_WITH_AS(make(two, data::open_raw<float>(folder / "short", {2})), doctest::Contains("has 2 rows"),
                       DataError);
  CHECK_THROWS_WITH_AS((data::ArrayDataset{ArrayMember{&Pair::a, two}, ArrayMember{&Pair::a, two}}),
                       doctest::Contains("member 1 of ArrayDataset is bound twice"), ConfigError);
}

TEST_CASE("rows of several extents are cut into a vector's arrays only at an extent") {
  TemporaryFolder const folder;
  struct Steps {
    std::vector<std::array<float, 3>> steps;
  };
  struct Sixes {
    std::vector<std::array<float, 6>> steps;
  };
  struct Flat {
    std::vector<float> numbers;
  };
  std::vector<float> values(2 * 4 * 3 * 2);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  write_file(folder / "array", bytes_of(values));
  auto const shaped = [&](std::vector<Index> const& row) { return data::open_raw<float>(folder / "array", row); };
  CHECK(data::ArrayDataset{ArrayMember{&Steps::steps, shaped({8, 3})}}.get(1).steps[2][1] == 31);
  CHECK(data::ArrayDataset{ArrayMember{&Steps::steps, shaped({24})}}.get(1).steps.size() == 8);
  CHECK(data::ArrayDataset{ArrayMember{&Sixes::steps, shaped({4, 3, 2})}}.get(0).steps.size() == 4);
  CHECK(data::ArrayDataset{ArrayMember{&Flat::numbers, shaped({3, 8})}}.get(0).numbers.size() == 24);
  CHECK_THROWS_WITH_AS((data::ArrayDataset{ArrayMember{&Steps::steps, shaped({3, 8})}}),
                       doctest::Contains("array: has rows of 24 numbers [2, 3, 8], but member 0 of ArrayDataset is a "
                                         "vector of arrays of 3, and the last extents are not; transpose the file to "
                                         "[rows, steps, 3], or change the member's type"),
                       DataError);
  CHECK_THROWS_AS((data::ArrayDataset{ArrayMember{&Steps::steps, shaped({4, 3, 2})}}), DataError);
}

TEST_CASE("sequences of varying length are concatenated, in arrays of their own widths") {
  TemporaryFolder const folder;
  struct Flight {
    Index number = 0;
    std::vector<float> heights;
    std::vector<std::array<std::int16_t, 2>> track;
  };
  static_assert(rows == 13);
  auto const heights = numbers<float>(folder, "heights", 1);
  auto const track = numbers<std::int16_t>(folder, "track", 2);
  write_file(folder / "number", bytes_of(std::vector<Index>{0, 1, 2}));
  auto const number = data::open_raw<Index>(folder / "number", {1});
  auto const make = [&](data::RowRanges const& a, data::RowRanges const& b) {
    return data::ArrayDataset{ArrayMember{&Flight::track, track, a}, ArrayMember{&Flight::number, number},
                              ArrayMember{&Flight::heights, heights, b}};
  };
  auto const lengths = data::RowRanges::of_lengths(std::vector{5, 0, 8});
  auto const flights = make(lengths, data::RowRanges::of_lengths(std::vector{4, 1, 8}));
  CHECK(flights.size() == 3);
  CHECK(flights.name(2) == "sequence 2 of " + folder / "track" + ", " + folder / "number" + ", " + folder / "heights");
  CHECK(flights.get(0).track.size() == 5);
  CHECK(flights.get(1).track.empty());
  CHECK(flights.get(1).heights == std::vector<float>{4});
  CHECK(flights.get(2).track.front() == std::array<std::int16_t, 2>{10, 11});
  for (Index i = 0; i < 3; ++i) CHECK(flights.extent(i) == data::extent_of(flights.get(i)));
  CHECK(flights.fingerprint() != make(lengths, lengths).fingerprint());

  data::DataLoader loader{flights, data::ShuffledSampler{}, data::RaggedCollate{}, {.batch_size = 3}};
  loader.start({}, 0, 0, 1);
  auto const held = loader.next();
  auto const& batch = held.batches()[0];
  for (Index r = 0; r < 3; ++r) {
    auto const flight = flights.get(batch[&Flight::number].values(r));
    auto const begin = batch[&Flight::heights].offsets(r), from = batch[&Flight::track].offsets(r);
    REQUIRE(batch[&Flight::heights].offsets(r + 1) - begin == static_cast<Index>(flight.heights.size()));
    for (std::size_t k = 0; k < flight.heights.size(); ++k)
      CHECK(batch[&Flight::heights].values(begin + static_cast<Index>(k)) == flight.heights[k]);
    for (std::size_t k = 0; k < flight.track.size(); ++k)
      CHECK(batch[&Flight::track].values(from + static_cast<Index>(k), 1) == flight.track[k][1]);
  }

  CHECK_THROWS_WITH_AS(make(lengths, data::RowRanges::of_lengths(std::vector{5, 0, 9})),
                       doctest::Contains("has 13 rows, and the samples of member 2 of ArrayDataset have 14 together"),
                       DataError);
  CHECK_THROWS_WITH_AS(make(lengths, data::RowRanges::of_lengths(std::vector{5, 8})),
                       doctest::Contains("track has 3 sequences; each sample"), DataError);
  CHECK_THROWS_WITH_AS(make({}, {}), doctest::Contains("number: has 3 rows, and"), DataError);
  struct Fixed {
    std::array<float, 1> height{};
  };
  CHECK_THROWS_WITH_AS((data::ArrayDataset{ArrayMember{&Fixed::height, heights, lengths}}),
                       doctest::Contains("is not a vector"), ConfigError);
}

TEST_CASE("sliding windows of a long array are samples, in vectors and in arrays of one length") {
  TemporaryFolder const folder;
  struct Window {
    std::vector<std::array<float, 2>> past;
    std::array<float, 3> future{};
  };
  auto const series = numbers<float>(folder, "series", 2), load = numbers<float>(folder, "load", 1);
  auto const make = [&](data::RowWindows const& past, data::RowWindows const& future) {
    return data::ArrayDataset{ArrayMember{&Window::past, series, data::RowRanges::windows(past)},
                              ArrayMember{&Window::future, load, data::RowRanges::windows(future)}};
  };
  auto const windows = make({.length = 4, .end = rows - 3}, {.length = 3, .first = 4});
  CHECK(windows.size() == 7);  // the last: rows 6 to 9, then 10 to 12
  CHECK(windows.get(6).past == std::vector<std::array<float, 2>>{{12, 13}, {14, 15}, {16, 17}, {18, 19}});
  CHECK(windows.get(6).future == std::array<float, 3>{10, 11, 12});
  CHECK(windows.name(6) == "window 6 of " + folder / "series" + ", " + folder / "load");
  for (Index i = 0; i < windows.size(); ++i) CHECK(windows.extent(i) == data::extent_of(windows.get(i)));
  CHECK(windows.fingerprint() !=
        make({.length = 4, .end = rows - 3}, {.length = 3, .first = 4, .end = rows}).fingerprint());

  data::DataLoader loader{windows, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 7}};
  loader.start({}, 0, 0, 1);
  auto const held = loader.next();
  auto const& batch = held.batches()[0];
  for (Index r = 0; r < 7; ++r) {
    CHECK(batch[&Window::past].lengths(r) == 4);
    CHECK(batch[&Window::past].values(r, 3, 1) == static_cast<float>(2 * (r + 3) + 1));
    CHECK(batch[&Window::future].values(r, 2) == static_cast<float>(r + 6));
  }

  CHECK_THROWS_WITH_AS(make({.length = 4}, {.length = 3, .first = 4}), doctest::Contains("load: has 7 windows, and "),
                       DataError);
  CHECK_THROWS_WITH_AS(make({.length = 4, .end = rows - 3}, {.length = 2, .first = 4}),
                       doctest::Contains("rows of 1 numbers [13, 1], but member 1 of ArrayDataset takes 3 for windows "
                                         "of 2 rows"),
                       DataError);
  CHECK_THROWS_WITH_AS(make({.length = 4, .end = rows + 1}, {.length = 3, .first = 4}),
                       doctest::Contains("series: has 13 rows, and the windows of member 0 of ArrayDataset end before "
                                         "row 14; end them at the array's end, or earlier"),
                       DataError);
}

TEST_CASE("a file truncated during training fails the batch that needs the missing rows, by name") {
  TemporaryFolder const folder;
  data::DataLoader loader{dataset(folder), data::ShuffledSampler{}, data::PadCollate{}, {.batch_size = rows}};
  std::filesystem::resize_file(folder / "centre", 12);
  loader.start({}, 0, 0, 1);
  CHECK_THROWS_WITH_AS(static_cast<void>(loader.next()), doctest::Contains("centre: ends at byte 12"), DataError);
}
