// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/streamed.hpp>

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/combine/transform.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>
#include <lockstep/data/source/finite_check.hpp>

using namespace lockstep;

namespace {

struct Sample {
  Index epoch = 0, lane = 0, number = 0;
  friend bool operator==(Sample const&, Sample const&) = default;
};

/// Lane k has lengths[k] samples; the sample at `bad` of lane 0 cannot be read.
struct Numbers {
  std::vector<Index> lengths;
  Index bad = -1;
  bool can_skip = false;
  std::shared_ptr<std::atomic<Index>> skipped = std::make_shared<std::atomic<Index>>(0);

  struct Lane {
    Index epoch, k, length, bad, number = 0;
    std::optional<Sample> next() {
      if (number == length) return {};
      if (number++ == bad) throw DataError("it is bad");
      return Sample{epoch, k, number - 1};
    }
  };
  struct SkippingLane : Lane {
    std::atomic<Index>* skipped;
    void skip(Index count) {
      number = std::min(count, length);
      *skipped += count;
    }
  };
  Index lanes() const { return static_cast<Index>(lengths.size()); }
  Lane lane(Index k, Index epoch) const { return {epoch, k, lengths[static_cast<std::size_t>(k)], k == 0 ? bad : -1}; }
};
struct SkippingNumbers : Numbers {
  SkippingLane lane(Index k, Index epoch) const { return {Numbers::lane(k, epoch), skipped.get()}; }
};
static_assert(data::StreamDataset<Numbers> && data::StreamDataset<SkippingNumbers>);
static_assert(data::Dataset<data::Streamed<Numbers>>);

/// A stream for the loader that counts its requests.
template <class Stream>
struct Counting : data::Streamed<Stream> {
  std::shared_ptr<std::atomic<Index>> taken;
  auto take(data::SampleKey const& key) const {
    ++*taken;
    return data::Streamed<Stream>::take(key);
  }
};
template <class Stream = Numbers>
auto loader_of(Stream stream, data::DataLoaderOptions options, Index samples = data::Streamed<Stream>::unknown,
               std::shared_ptr<std::atomic<Index>> taken = std::make_shared<std::atomic<Index>>(0)) {
  return data::DataLoader{Counting<Stream>{data::Streamed{stream, samples}, taken}, data::SequentialSampler{},
                          data::PadCollate{}, options};
}
std::vector<Sample> rows_of(data::Columns<Sample> const& batch) {
  std::vector<Sample> out;
  for (Index r = 0; r < batch.rows(); ++r)
    out.push_back({batch[&Sample::epoch].values(r), batch[&Sample::lane].values(r), batch[&Sample::number].values(r)});
  return out;
}
/// Returns each rank's samples of an epoch in global order: the rows of a step by their positions. An epoch of unknown
/// length ends with the first step that has no rows on any rank.
template <class Loader>
std::vector<Sample> epoch_of(Loader& loader, int ranks, Index epoch, data::LoaderState const* from = nullptr) {
  struct Row {
    Index position;
    Sample sample;
  };
  std::vector<Row> all;
  for (int rank = 0; rank < ranks; ++rank) {
    data::Split const split{rank, 1, ranks};
    from ? loader.resume(split, *from, epoch + 1) : loader.start(split, epoch, 0, epoch + 1);
    for (;;) {
      auto const held = loader.next();
      if (held.rows() == 0) break;
      auto const& batch = held.batches()[0];
      auto const rows = rows_of(batch);
      for (std::size_t r = 0; r < rows.size(); ++r) all.push_back({batch.positions()(static_cast<Index>(r)), rows[r]});
    }
  }
  std::sort(all.begin(), all.end(), [](auto const& a, auto const& b) { return a.position < b.position; });
  std::vector<Sample> out;
  for (auto const& row : all) out.push_back(row.sample);
  return out;
}
/// By definition: round robin over the lanes.
std::vector<Sample> expected(Numbers const& stream, Index epoch) {
  std::vector<Sample> out;
  for (Index number = 0; number < 100; ++number)
    for (Index k = 0; k < stream.lanes(); ++k)
      if (number < stream.lengths[static_cast<std::size_t>(k)] && !(k == 0 && number == stream.bad))
        out.push_back({epoch, k, number});
  return out;
}

}  // namespace

TEST_CASE("the global sequence is equal for any ranks and workers, and each sample appears once") {
  for (Numbers const& stream :
       {Numbers{{31, 31, 31, 31, 31, 31}}, Numbers{{32, 0, 1, 33, 7, 33}}, Numbers{{0, 0, 0, 0, 0, 0}}}) {
    for (int ranks : {1, 2, 3, 6}) {
      for (int workers : {0, 1, 3}) {
        auto loader = loader_of(stream, {.batch_size = 5, .workers = workers});
        for (Index epoch : {0, 2}) CHECK(epoch_of(loader, ranks, epoch) == expected(stream, epoch));
      }
    }
  }
}

TEST_CASE("an epoch of unknown length ends for all ranks at one step") {
  Numbers const stream{{3, 12}};  // rank 0 has three samples, rank 1 twelve
  auto mine = loader_of(stream, {.batch_size = 2}), others = loader_of(stream, {.batch_size = 2});
  mine.start({0, 1, 2}, 0, 0, 1);
  others.start({1, 1, 2}, 0, 0, 1);
  std::vector<Index> rows;
  for (auto other = others.next();; other = others.next()) {
    auto const held = mine.next_while_any([&](Index own) { return own + other.rows(); });
    if (!held) break;
    rows.push_back(held->rows());
  }
  CHECK(rows == std::vector<Index>{2, 1, 0, 0, 0, 0});
}

TEST_CASE("epochs of a given number of samples end at one step on all ranks and follow each other without a gap") {
  Numbers const stream{{10, 10, 4, 10}};
  for (Index samples : {0, 1, 24, 37, 60}) {
    std::vector<Sample> wanted;
    for (Index epoch : {0, 1, 2})
      for (Index p = 0; p < samples; ++p)
        if (p / 4 < stream.lengths[static_cast<std::size_t>(p % 4)]) wanted.push_back({epoch, p % 4, p / 4});
    std::vector<Sample> found;
    for (int rank : {0, 1}) {
      auto loader = loader_of(stream, {.batch_size = 3, .workers = 2, .prefetch = 4}, samples);
      data::Split const split{rank, 1, 2};
      CHECK(loader.steps(split) == (samples + 5) / 6);
      loader.start(split, 0, 0, 3);
      for (Index i = 0; i < 3 * loader.steps(split); ++i) {
        auto const rows = rows_of(loader.next().batches()[0]);
        found.insert(found.end(), rows.begin(), rows.end());
      }
    }
    auto const before = [](Sample const& a, Sample const& b) {
      return std::tuple(a.epoch, a.number, a.lane) < std::tuple(b.epoch, b.number, b.lane);
    };
    std::sort(found.begin(), found.end(), before);
    CHECK(found == wanted);
  }
}

TEST_CASE("an epoch resumes from a state, with other ranks and workers") {
  Numbers const stream{{31, 33, 0, 12}, 3};
  auto const check = [&](auto const& each) {
    auto loader = loader_of(each, {.batch_size = 5, .workers = 2, .on_failure = data::OnFailure::skip});
    loader.start({0, 1, 2}, 1, 0, 2);
    static_cast<void>(loader.next());
    auto const state = loader.state_after(loader.next());
    CHECK(state.position == 20);
    auto rest = expected(each, 1);
    std::erase_if(rest, [](Sample const& s) { return s.number < 5; });
    for (int ranks : {1, 2, 4}) CHECK(epoch_of(loader, ranks, 1, &state) == rest);
    loader.start({}, 1, 4, 2);  // the place that its step gives
    CHECK(rows_of(loader.next().batches()[0]).front() == rest.front());
  };
  check(stream);
  SkippingNumbers const skipping{stream};
  check(skipping);
  CHECK(*skipping.skipped > 0);
  *skipping.skipped = 0;
  auto loader = loader_of(skipping, {.batch_size = 5});
  loader.start({}, 1, 4, 2);  // a place is skipped to by its step, and no earlier samples are kept
  static_cast<void>(loader.next());
  CHECK(*skipping.skipped > 0);
}

TEST_CASE("a failing sample is reported at its batch, and the stream continues after it") {
  Numbers const stream{{9, 9}, 4};  // position 8, in the third batch of four
  for (int workers : {0, 1, 3}) {
    auto const taken = std::make_shared<std::atomic<Index>>(0);
    auto loader = loader_of(stream, {.batch_size = 4, .workers = workers}, 20, taken);
    loader.start({}, 0, 0, 1);
    std::vector<Sample> found;
    int failures = 0;
    for (int step = 0; step < 5; ++step) {
      try {
        auto const rows = rows_of(loader.next().batches()[0]);
        found.insert(found.end(), rows.begin(), rows.end());
      } catch (DataError const& error) {
        ++failures;
        CHECK(step == 2);
        CHECK(std::string_view(error.what()).find("sample 4 of lane 0") != std::string_view::npos);
        CHECK(std::string_view(error.what()).find("it is bad") != std::string_view::npos);
      }
    }
    CHECK(failures == 1);
    CHECK(*taken == 20);  // no error is kept that is never requested
    auto wanted = expected(stream, 0);
    std::erase_if(wanted, [](Sample const& s) { return s.number == 4 || s.number == 5; });  // the batch
    CHECK(found == wanted);

    auto skipping = loader_of(stream, {.batch_size = 4, .workers = workers, .on_failure = data::OnFailure::skip});
    CHECK(epoch_of(skipping, 1, 0) == expected(stream, 0));
    CHECK(skipping.stats().skipped == 1);
  }
}

TEST_CASE("unsupported operations of a stream are refused") {
  Numbers const stream{{2, 1}};
  data::Streamed const streamed{stream};
  CHECK(streamed.get(1) == Sample{0, 1, 0});
  CHECK_THROWS_WITH_AS(static_cast<void>(streamed.get(3)), doctest::Contains("its lane has ended"), DataError);
  CHECK(streamed.get(2) == Sample{0, 0, 1});
  CHECK(streamed.get(0) == Sample{0, 0, 0});  // was read on the way
  CHECK_THROWS_WITH_AS(static_cast<void>(streamed.get(0)), doctest::Contains("is before the position of the stream"),
                       ConfigError);
  auto const copy = streamed;
  CHECK(copy.get(0) == Sample{0, 0, 0});
  CHECK_THROWS_WITH_AS(data::Streamed{Numbers{}}, doctest::Contains("has 0 lanes"), ConfigError);
  CHECK_THROWS_WITH_AS((data::Streamed{stream, -1}), doctest::Contains("samples is -1"), ConfigError);
  auto loader = loader_of(stream, {});
  CHECK_THROWS_WITH_AS(loader.start({0, 1, 3}, 0, 0, 1), doctest::Contains("a divisor of the stream's 2 lanes"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(loader_of(stream, {.tail = data::Tail::pad}), doctest::Contains("a stream has no other samples"),
                       ConfigError);
  CHECK_THROWS_AS(loader_of(stream, {.on_failure = data::OnFailure::substitute}), ConfigError);
  CHECK_FALSE(loader.has_end());
  CHECK(loader_of(stream, {}, 20).has_end());
}

TEST_CASE("places can be requested in any order, also across an epoch boundary, and errors keep their place") {
  struct Marked {  // 100 * epoch + 10 * lane + number, and how often the lane was opened before
    std::atomic<int>* opened;
    struct Lane {
      int first, opened, number = 0;
      std::optional<std::pair<int, int>> next() {
        auto const at = number++;
        if (first == 200 && at == 1) throw DataError("broken");
        return std::pair(first + at, opened);
      }
    };
    Index lanes() const { return 2; }
    Lane lane(Index k, Index epoch) const { return {static_cast<int>(100 * epoch + 10 * k), (*opened)++}; }
  };
  std::atomic<int> opened = 0;
  data::Streamed const stream(Marked{&opened}, 6);
  auto const at = [&](Index epoch, Index position) { return stream.take({0, epoch, position}).value().first; };
  CHECK(at(0, 4) == 2);
  CHECK(at(1, 2) == 101);
  CHECK(at(0, 2) == 1);
  CHECK(at(1, 0) == 100);
  CHECK(at(0, 0) == 0);
  CHECK(at(2, 4) == 202);
  CHECK_THROWS_WITH_AS(at(2, 2), "broken", DataError);
  CHECK(at(2, 0) == 200);
  CHECK_THROWS_AS(at(2, 0), ConfigError);

  stream.rewind(0, 3);
  CHECK_THROWS_AS(at(0, 2), ConfigError);  // used already
  CHECK(at(0, 5) == 12);
  auto const before = opened.load();
  stream.rewind(0, 0);
  CHECK(stream.take({0, 0, 3}).value().second >= before);  // no kept sample is given twice
  CHECK(at(0, 1) == 10);
}

TEST_CASE("a step whose samples are all skipped does not end the stream") {
  auto loader = loader_of(Numbers{{6}, 2}, {.batch_size = 1, .on_failure = data::OnFailure::skip});
  loader.start({}, 0, 0, 1);
  std::vector<Index> numbers;
  while (auto const held = loader.next_while_any([](Index own) { return own; }))
    for (auto const& sample : rows_of(held->batches()[0])) numbers.push_back(sample.number);
  CHECK(numbers == std::vector<Index>{0, 1, 3, 4, 5});
}

TEST_CASE("a stream continues after failed samples, whatever they threw") {
  struct Parsed {
    struct Lane {
      Index number = 0;
      std::optional<Sample> next() {
        if (number == 8) return {};
        if (number++ == 1) throw std::invalid_argument("stof");
        return Sample{0, 0, number - 1};
      }
    };
    Index lanes() const { return 1; }
    Lane lane(Index, Index) const { return {}; }
  };
  auto loader = loader_of(Parsed{}, {.batch_size = 1, .on_failure = data::OnFailure::skip});
  loader.resume({}, loader.state_before({}, 0, 5), 1);
  std::vector<Index> numbers;
  while (auto const held = loader.next_while_any([](Index own) { return own; }))
    for (auto const& sample : rows_of(held->batches()[0])) numbers.push_back(sample.number);
  CHECK(numbers == std::vector<Index>{5, 6, 7});
}

TEST_CASE("a lane whose skip fails is opened again, at its position") {
  struct Cut {
    std::atomic<int>* failures;
    struct Lane {
      std::atomic<int>* failures;
      Index number = 0;
      std::optional<Sample> next() { return Sample{0, 0, number++}; }
      void skip(Index count) {
        number = count / 2;
        if ((*failures)-- > 0) throw DataError("the file is busy");
        number = count;
      }
    };
    Index lanes() const { return 1; }
    Lane lane(Index, Index) const { return {failures}; }
  };
  std::atomic<int> failures = 2;
  data::Streamed const stream(Cut{&failures}, 20);
  stream.rewind(0, 10);
  CHECK_THROWS_WITH_AS(static_cast<void>(stream.take({0, 0, 10})), "the file is busy", DataError);
  CHECK_THROWS_WITH_AS(static_cast<void>(stream.take({0, 0, 11})), "the file is busy", DataError);
  CHECK(stream.take({0, 0, 12}) == Sample{0, 0, 12});
  CHECK(stream.take({0, 0, 13}) == Sample{0, 0, 13});
}

TEST_CASE("an epoch of unknown length ends although a lane cannot be opened") {
  struct Missing : Numbers {
    Lane lane(Index k, Index epoch) const {
      if (k == 1) throw DataError("the file is gone");
      return Numbers::lane(k, epoch);
    }
  };
  auto loader = loader_of(Missing{{{3, 3}}}, {.batch_size = 2, .on_failure = data::OnFailure::skip});
  loader.start({}, 0, 0, 1);
  std::vector<Index> numbers;
  for (int step = 0; step < 10; ++step) {
    auto const held = loader.next_while_any([](Index own) { return own; });
    if (!held) break;
    REQUIRE(step < 9);
    for (auto const& sample : rows_of(held->batches()[0])) numbers.push_back(sample.number);
  }
  CHECK(numbers == std::vector<Index>{0, 1, 2});
  CHECK(loader.stats().skipped == 1);
}

TEST_CASE("a transformed stream is a stream") {
  Numbers const numbers{{5, 0, 3}, 2};
  auto const tenfold = [](Sample sample) {
    sample.number *= 10;
    return sample;
  };
  auto const marked = [](Sample sample, data::SampleKey const& key) {
    sample.lane += 100 * key.position;
    return sample;
  };
  data::DataLoader loader{
      data::Transform{data::Transform{data::FiniteCheck{data::Streamed{numbers, 15}}, tenfold}, marked},
      data::SequentialSampler{},
      data::PadCollate{},
      {.batch_size = 4, .workers = 2, .on_failure = data::OnFailure::skip}};
  loader.start({}, 1, 0, 2);
  std::vector<Sample> rows, wanted;
  for (int step = 0; step < 4; ++step)
    for (auto const& row : rows_of(loader.next().batches()[0])) rows.push_back(row);
  for (auto const& row : expected(numbers, 1))
    wanted.push_back({1, row.lane + 100 * (3 * row.number + row.lane), 10 * row.number});
  CHECK(rows == wanted);
  CHECK(loader.stats().skipped == 1);
}

TEST_CASE("samples of a stream are checked as they pass") {
  struct Reading {
    double value;
  };
  struct Sensor {
    struct Lane {
      int number = 0;
      std::optional<Reading> next() {
        if (number == 3) return {};
        return Reading{++number == 2 ? std::numeric_limits<double>::quiet_NaN() : number};
      }
    };
    Index lanes() const { return 1; }
    Lane lane(Index, Index) const { return {}; }
  };
  data::FiniteCheck const readings{data::Streamed{Sensor{}, 3}};
  CHECK(readings.take({0, 0, 0})->value == 1);
  CHECK_THROWS_WITH_AS(static_cast<void>(readings.take({0, 1, 1})),
                       doctest::Contains("sample 1 of lane 0: member 0 holds an infinity or a NaN"), DataError);
  CHECK(readings.take({0, 2, 2})->value == 3);
}
