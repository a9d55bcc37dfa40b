// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/loader/data_loader.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iterator>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/core/out_of_memory.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/combine/cache.hpp>
#include <lockstep/data/combine/subset.hpp>
#include <lockstep/data/combine/transform.hpp>
#include <lockstep/data/sample_extent.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>

#include "malloc_count.hpp"

using namespace lockstep;

namespace {

struct Sample {
  std::vector<std::int32_t> tokens;
  int label = 0;
};

struct Named {
  std::string name;
};

std::vector<Sample> samples(Index count) {
  std::vector<Sample> out;
  for (Index i = 0; i < count; ++i) {
    out.push_back(
        {std::vector<std::int32_t>(static_cast<std::size_t>(i * 7 % 11), static_cast<int>(i)), static_cast<int>(i)});
  }
  return out;
}
data::InMemoryDataset<Sample> in_memory(Index count) { return data::InMemoryDataset{samples(count)}; }

/// Returns samples by value, and fails for chosen ones.
struct Generated {
  Index count = 0;
  std::vector<Index> failing{};

  Index size() const { return count; }
  Sample get(Index i) const {
    if (std::find(failing.begin(), failing.end(), i) != failing.end()) throw std::runtime_error("file is gone");
    return {std::vector<std::int32_t>(static_cast<std::size_t>(i * 7 % 11), static_cast<int>(i)), static_cast<int>(i)};
  }
};

/// Has extents and writes samples in place.
struct Direct {
  Index count = 0;

  Index size() const { return count; }
  Sample get(Index i) const { return Generated{count}.get(i); }
  data::SampleExtent<Sample> extent(Index i) const { return {{i * 7 % 11}}; }
  void read_into(Index i, data::Row<Sample> row) const {
    for (auto& token : row[&Sample::tokens]) token = static_cast<int>(i);
    row[&Sample::label] = static_cast<int>(i);
  }
};
static_assert(data::ReadsIntoRows<Direct, data::PadCollate>);
static_assert(!data::ReadsIntoRows<Generated, data::PadCollate>);

/// Remembers the address of its memory.
struct Known {
  std::vector<std::pair<std::byte const*, std::byte const*>>* blocks;
  memory::Block allocate(std::size_t bytes) const {
    auto block = memory::HostResource{}.allocate(bytes);
    blocks->emplace_back(block.data(), block.data() + block.bytes());
    return block;
  }
  [[nodiscard]] bool contains(void const* at) const {
    return std::any_of(blocks->begin(), blocks->end(),
                       [at](auto const& block) { return block.first <= at && at < block.second; });
  }
};

/// One row as delivered, to compare loaders.
struct Seen {
  Index epoch, position;
  int label;
  friend auto operator<=>(Seen const&, Seen const&) = default;
};

template <class Batch>
void record(Batch const& batch, std::vector<Seen>& seen) {
  auto const& tokens = batch[&Sample::tokens];
  bool as_made = true;
  Index longest = 0;
  for (Index r = 0; r < batch.rows(); ++r) {
    auto const label = batch[&Sample::label].values(r);
    auto const length = static_cast<Index>(tokens.lengths(r));
    as_made &= length == label * 7 % 11;
    for (Index i = 0; i < tokens.values.extent[1]; ++i) as_made &= tokens.values(r, i) == (i < length ? label : 0);
    longest = std::max(longest, length);
    seen.push_back({batch.epoch(), batch.positions()(r), label});
  }
  REQUIRE(as_made);
  REQUIRE(tokens.values.extent[1] == longest);
}

/// Counts the threads, or open files, of this process.
std::ptrdiff_t entries(char const* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}
std::ptrdiff_t running_threads() { return entries("/proc/self/task"); }
/// Whether at most `count` threads are left: the system lists a thread for a moment after it was joined.
bool no_more_threads_than(std::ptrdiff_t count) {
  for (int milliseconds = 0; running_threads() > count && milliseconds < 5000; ++milliseconds)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return running_threads() <= count;
}

/// Returns the rows of all ranks of a world of `all` for the epochs [first, last), each rank with its own loader of one
/// shard.
template <class D, class S>
std::vector<Seen> run_world(D const& dataset, S const& sampler, data::DataLoaderOptions options, int all, Index first,
                            Index last) {
  std::vector<Seen> seen;
  for (int rank = 0; rank < all; ++rank) {
    data::DataLoader loader{dataset, sampler, data::PadCollate{}, options};
    data::Split const split{rank, 1, all};
    loader.start(split, first, 0, last);
    for (Index epoch = first; epoch < last; ++epoch) {
      for (Index step = 0; step < loader.steps(split); ++step) {
        auto const held = loader.next();
        REQUIRE(held.epoch() == epoch);
        REQUIRE(held.step() == step);
        REQUIRE(held.batches().size() == 1);
        auto const before = static_cast<std::ptrdiff_t>(seen.size());
        record(held.batches()[0], seen);
        REQUIRE(std::all_of(seen.begin() + before, seen.end(),
                            [&](auto const& row) { return row.position % all == rank; }));
      }
    }
    REQUIRE_THROWS_AS(static_cast<void>(loader.next()), ConfigError);
  }
  std::sort(seen.begin(), seen.end());
  return seen;
}

}  // namespace

TEST_CASE("an epoch delivers each position once, in the sampler's order, for any length, ranks, workers and tail") {
  data::ShuffledSampler const sampler{.seed = 5};
  constexpr Index batch_size = 4;
  auto const check = [&](Index length, int ranks, int workers, data::Tail tail) {
    CAPTURE(length);
    CAPTURE(ranks);
    CAPTURE(workers);
    auto const dataset = in_memory(length);
    auto const order = sampler.over(dataset);
    auto const global = batch_size * ranks;
    auto const dealt = tail == data::Tail::exact ? length
                       : tail == data::Tail::pad ? (length + ranks - 1) / ranks * ranks
                                                 : length / global * global;
    std::vector<int> labels(static_cast<std::size_t>(dealt), -1);  // by position
    bool in_place = true;
    data::DataLoader loader{
        dataset, sampler, data::PadCollate{}, {.batch_size = batch_size, .workers = workers, .tail = tail}};
    for (int rank = 0; rank < ranks; ++rank) {
      data::Split const split{rank, 1, ranks};
      in_place &= loader.steps(split) == (dealt + global - 1) / global;
      loader.start(split, 3, 0, 4);
      for (Index step = 0; step < loader.steps(split); ++step) {
        auto const held = loader.next();
        auto const& batch = held.batches()[0];
        in_place &= batch.rows() <= batch_size;
        for (Index r = 0; r < batch.rows(); ++r) {
          auto const position = batch.positions()(r);
          in_place &= position / global == step && position % ranks == rank && position < dealt;
          if (!in_place) break;
          auto& label = labels[static_cast<std::size_t>(position)];
          in_place &= label == -1;
          label = batch[&Sample::label].values(r);
        }
      }
    }
    auto const index_at = order.in(3);
    for (Index p = 0; p < dealt; ++p) in_place &= labels[static_cast<std::size_t>(p)] == index_at(p % length);
    REQUIRE(in_place);
  };
  constexpr std::array tails{data::Tail::exact, data::Tail::pad, data::Tail::drop};
  std::size_t next = 0;
  for (Index length = 0; length <= 120; ++length) {
    for (int ranks = 1; ranks <= 9; ++ranks)
      for (auto const tail : tails) check(length, ranks, 0, tail);
    // With threads: one combination of ranks, workers and tail for each length in turn.
    check(length, 1 + static_cast<int>(next / 12 % 9), 1 + static_cast<int>(next / 3 % 4), tails[next % 3]);
    ++next;
  }
}

TEST_CASE("the global sequence does not depend on ranks, workers, devices or the kind of dataset") {
  data::ShuffledSampler const sampler{.seed = 9};
  auto const expected = run_world(in_memory(61), sampler, {.batch_size = 1, .workers = 0}, 1, 0, 3);
  for (int all : {1, 2, 3, 5}) {
    for (int workers : {0, 1, 3}) {
      data::DataLoaderOptions const options{.batch_size = 3, .workers = workers, .prefetch = 3};
      CHECK(run_world(in_memory(61), sampler, options, all, 0, 3) == expected);
      CHECK(run_world(Generated{61}, sampler, options, all, 0, 3) == expected);
      CHECK(run_world(Direct{61}, sampler, options, all, 0, 3) == expected);
    }
  }
  data::DataLoader loader{in_memory(61), sampler, data::PadCollate{}, {.batch_size = 3, .workers = 2}};
  loader.start({0, 4, 4}, 0, 0, 3);
  std::vector<Seen> seen;
  for (Index i = 0; i < 3 * loader.steps({0, 4, 4}); ++i) {
    auto const held = loader.next();
    REQUIRE(held.batches().size() == 4);
    for (auto const& batch : held.batches()) record(batch, seen);
  }
  std::sort(seen.begin(), seen.end());
  CHECK(seen == expected);
}

TEST_CASE("many devices of a process get their batches, whichever worker makes them") {
  constexpr int shards = 20'000;
  for (int workers : {0, 3}) {
    data::DataLoader loader{Direct{2 * shards}, data::SequentialSampler{}, data::PadCollate{}, {.workers = workers}};
    loader.start({0, shards, shards}, 0, 0, 1);
    for (Index step = 0; step < 2; ++step) {
      auto const held = loader.next();
      for (int shard = 0; shard < shards; ++shard)
        REQUIRE(held.batches()[static_cast<std::size_t>(shard)][&Sample::label].values(0) == step * shards + shard);
    }
  }
}

TEST_CASE("a start in the middle delivers the rest, regardless of earlier starts") {
  data::DataLoader loader{
      in_memory(50), data::ShuffledSampler{.seed = 2}, data::PadCollate{}, {.batch_size = 4, .workers = 2}};
  data::Split const split{1, 1, 2};
  auto const rest = [&](Index epoch, Index step) {
    std::vector<Seen> seen;
    loader.start(split, epoch, step, 3);
    for (auto left = (3 - epoch) * loader.steps(split) - step; left > 0; --left)
      record(loader.next().batches()[0], seen);
    CHECK_THROWS_AS(static_cast<void>(loader.next()), ConfigError);
    return seen;
  };
  auto const all = rest(0, 0);
  for (Index epoch = 0; epoch < 3; ++epoch) {
    for (Index step = 0; step <= loader.steps(split); ++step) {
      auto const some = rest(epoch, step);
      REQUIRE(some.size() <= all.size());
      CHECK(std::equal(some.begin(), some.end(), all.end() - static_cast<std::ptrdiff_t>(some.size())));
      if (step == 0) CHECK(some.size() == all.size() - static_cast<std::size_t>(epoch * 25));
    }
  }
}

TEST_CASE("tails: exact, pad and drop") {
  auto const count = [](data::Tail tail, Index length, int all) {
    return run_world(in_memory(length), data::SequentialSampler{}, {.batch_size = 4, .workers = 1, .tail = tail}, all,
                     0, 1);
  };
  for (Index length : {1, 7, 8, 9, 31, 32, 33}) {
    for (int all = 1; all <= 5; ++all) {
      auto const padded = count(data::Tail::pad, length, all);
      auto const dropped = count(data::Tail::drop, length, all);
      CHECK(static_cast<Index>(padded.size()) == (length + all - 1) / all * all);
      CHECK(static_cast<Index>(dropped.size()) == length / (4 * all) * (4 * all));
      for (auto const& row : padded) CHECK(row.label == row.position % length);
    }
  }
  data::DataLoader guide{in_memory(10000), data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 8}};
  CHECK(guide.samples() == 10000);
  CHECK(guide.steps({0, 1, 1}) == 1250);
  CHECK(guide.steps({0, 1, 4}) == 313);
}

TEST_CASE("a failing sample is reported at its batch by name, and the loader continues") {
  for (int workers : {0, 1, 3}) {
    data::DataLoader loader{Generated{20, {6, 5, 17}},
                            data::SequentialSampler{},
                            data::PadCollate{},
                            {.batch_size = 4, .workers = workers}};
    loader.start({}, 0, 0, 2);
    for (Index epoch = 0; epoch < 2; ++epoch) {
      for (Index step = 0; step < 5; ++step) {
        if (step == 1 || step == 4) {
          auto const index = step == 1 ? 5 : 17;
          auto const message = "sample " + std::to_string(index) + " (position " + std::to_string(index) +
                               " of epoch " + std::to_string(epoch) + ", step " + std::to_string(step) +
                               ") cannot be made: file is gone; to train without such samples, set on_failure "
                               "(--on-failure) to skip";
          try {
            static_cast<void>(loader.next());
            FAIL("no exception");
          } catch (DataError const& error) {
            CHECK(std::string(error.what()).find(message) != std::string::npos);
            CHECK_THROWS_WITH_AS(std::rethrow_if_nested(error), "file is gone", std::runtime_error);
          }
        } else {
          auto const held = loader.next();
          CHECK(held.step() == step);
          CHECK(held.batches()[0].rows() == 4);
          CHECK(held.batches()[0][&Sample::label].values(3) == step * 4 + 3);
        }
      }
    }
  }
}

namespace {
/// The dataset's order, beginning at another sample.
struct Shifted {
  struct Order {
    Index count, by;
    Index size() const { return count; }
    auto in(Index) const {
      return [*this](Index position) { return position + by; };
    }
  };
  Index by;
  template <class D>
  Order over(D const& dataset) const {
    return {dataset.size(), by};
  }
};
}  // namespace

TEST_CASE("the readers of workers are destroyed before the dataset that they refer to") {
  struct Counted {
    std::atomic<int>* living;
    explicit Counted(std::atomic<int>* count) : living(count) { ++*living; }
    Counted(Counted const& other) : Counted(other.living) {}
    Counted& operator=(Counted const&) = default;
    ~Counted() { --*living; }
  };
  struct Decoding {
    Counted self;
    std::atomic<int>* orphans;
    struct Worker {
      std::atomic<int>*datasets, *orphans;
      ~Worker() { *orphans += *datasets == 0 ? 1 : 0; }
      Sample get(Index) { return {}; }
    };
    Index size() const { return 8; }
    Sample get(Index) const { return {}; }
    Worker worker() const { return {self.living, orphans}; }
  };
  for (int workers : {0, 2}) {
    std::atomic<int> datasets = 0, orphans = 0;
    {
      data::DataLoader loader{Decoding{Counted(&datasets), &orphans},
                              data::SequentialSampler{},
                              data::PadCollate{},
                              {.batch_size = 4, .workers = workers}};
      loader.start({}, 0, 0, 1);
      static_cast<void>(loader.next());
      CHECK(datasets == 1);
    }
    CHECK(datasets == 0);
    CHECK(orphans == 0);
  }
}

TEST_CASE("a message about an index outside the dataset does not ask for its name") {
  struct Clips {
    std::vector<std::string> names = {"a", "b", "c"};
    Index size() const { return std::ssize(names); }
    Sample get(Index) const { return {}; }
    std::string name(Index i) const { return names.at(static_cast<std::size_t>(i)); }
  };
  for (Index by : {-1, 3}) {
    data::DataLoader loader{Clips{}, Shifted{by}, data::PadCollate{}, {.batch_size = 3}};
    loader.start({}, 0, 0, 1);
    auto const wrong = "DataLoader: sample " + std::to_string(by) + " (position 0 of epoch 0, step 0) cannot be made";
    CHECK_THROWS_WITH_AS(static_cast<void>(loader.next()), doctest::Contains(wrong.c_str()), DataError);
  }
}

TEST_CASE("an order with indices outside the dataset is refused before any sample is read") {
  for (int workers : {0, 2})
    for (Index by : {-1, 1}) {
      data::DataLoader loader{in_memory(8), Shifted{by}, data::PadCollate{}, {.batch_size = 4, .workers = workers}};
      loader.start({}, 0, 0, 1);
      auto const message = by < 0 ? "the sampler's order has sample -1 at position 0 of epoch 0, and the dataset 8"
                                  : "the sampler's order has sample 8 at position 7 of epoch 0, and the dataset 8";
      for (int step = 0; step < 2; ++step) {
        if ((step == 0) != (by < 0)) {
          CHECK_NOTHROW(static_cast<void>(loader.next()));
          continue;
        }
        try {
          static_cast<void>(loader.next());
          FAIL("no exception");
        } catch (DataError const& error) {
          std::string all = error.what();
          try {
            std::rethrow_if_nested(error);
          } catch (std::exception const& inner) {
            all += inner.what();
          }
          CAPTURE(all);
          CHECK(all.find(message) != std::string::npos);
        }
      }
    }
}

TEST_CASE("with several devices the failure with the lowest position is reported") {
  data::DataLoader loader{
      Generated{32, {9, 6, 3}}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 8, .workers = 3}};
  for (int i = 0; i < 20; ++i) {
    loader.start({0, 2, 2}, 0, 0, 1);
    CHECK_THROWS_WITH_AS(static_cast<void>(loader.next()), doctest::Contains("sample 3 (position 3"), DataError);
    CHECK(loader.next().batches()[1].rows() == 8);
  }
  data::DataLoader in_one_row{
      Generated{16, {3, 2}}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 8, .workers = 3}};
  in_one_row.start({0, 2, 2}, 0, 0, 1);
  CHECK_THROWS_WITH_AS(static_cast<void>(in_one_row.next()), doctest::Contains("sample 2 (position 2"), DataError);
}

TEST_CASE("a failing collate is reported as the batch's failure") {
  data::DataLoader loader{in_memory(8), data::SequentialSampler{}, data::PadCollate{.value = 0.5}, {.batch_size = 4}};
  loader.start({}, 0, 0, 1);
  CHECK_THROWS_WITH_AS(static_cast<void>(loader.next()),
                       doctest::Contains("the batch of epoch 0, step 0 cannot be made: PadCollate"), DataError);
}

TEST_CASE("a failure that on_failure cannot handle does not name it") {
  struct NoMemory {
    Index size() const { return 4; }
    Sample get(Index) const { throw OutOfMemoryError("no memory for the file"); }
  };
  data::DataLoader loader{NoMemory{}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 4}};
  loader.start({}, 0, 0, 1);
  CHECK_THROWS_WITH_AS(static_cast<void>(loader.next()),
                       "DataLoader: sample 0 (position 0 of epoch 0, step 0) cannot be made: no memory for the file",
                       DataError);
}

TEST_CASE("held batches do not change during later batches, a new start and the loader's destruction") {
  auto const threads = running_threads();
  for (int workers : {0, 2}) {
    std::optional<data::DataLoader<data::InMemoryDataset<Sample>, data::SequentialSampler, data::PadCollate>> loader;
    loader.emplace(in_memory(100), data::SequentialSampler{}, data::PadCollate{},
                   data::DataLoaderOptions{.batch_size = 4, .workers = workers, .prefetch = 2});
    loader->start({}, 0, 0, 1);
    auto const first = loader->next();
    auto const untouched = [&] {
      for (Index r = 0; r < 4; ++r) CHECK(first.batches()[0][&Sample::label].values(r) == r);
      CHECK(first.batches()[0].positions()(3) == 3);
    };
    for (int i = 0; i < 10; ++i) static_cast<void>(loader->next());
    untouched();
    loader->start({0, 2, 2}, 0, 5, 1);
    for (int i = 0; i < 5; ++i) CHECK(loader->next().batches().size() == 2);
    untouched();
    {
      auto const over_a_start = loader->next();
      loader->start({0, 2, 2}, 0, 0, 1);
      for (int i = 0; i < 10; ++i) static_cast<void>(loader->next());
      CHECK(over_a_start.batches()[1][&Sample::label].values(0) == 81);
    }
    for (int i = 10; i < 13; ++i) CHECK(loader->next().step() == i);
    untouched();
    loader.reset();
    untouched();
    CHECK(no_more_threads_than(threads));
  }
}

TEST_CASE("after the next start, batches are in the memory resource that the loader is given") {
  std::vector<std::pair<std::byte const*, std::byte const*>> blocks;
  blocks.reserve(100);  // workers only append to it, one at a time
  Known const known{&blocks};
  auto const lies_there = [&](auto const& batch) {
    return std::vector{known.contains(batch[&Sample::tokens].values.data),
                       known.contains(batch[&Sample::label].values.data), known.contains(batch.positions().data)};
  };
  std::vector const all{true, true, true}, none{false, false, false};
  // With a budget smaller than any batch, slabs are freed and allocated again.
  data::DataLoader loader(in_memory(40), data::SequentialSampler{}, data::PadCollate{},
                          {.batch_size = 4, .workers = 0, .budget_bytes = 1});
  loader.start({}, 0, 0, 1);
  auto const before = loader.next();
  loader.use(known);
  CHECK(lies_there(loader.next().batches()[0]) == none);
  loader.start({}, 0, 0, 1);
  for (int step = 0; step < 8; step += 2) {
    auto const held = loader.next(), another = loader.next();
    CHECK(lies_there(held.batches()[0]) == all);
    CHECK(lies_there(another.batches()[0]) == all);
    CHECK(held.batches()[0][&Sample::label].values(0) == 4 * step);
  }
  CHECK(blocks.size() == 3 + 2 + 3);  // positions, two slabs, and one of them allocated again three times
  CHECK(lies_there(before.batches()[0]) == none);

  // Freed memory is used again, also across a start.
  data::DataLoader again(in_memory(40), data::SequentialSampler{}, data::PadCollate{},
                         {.batch_size = 4, .workers = 0, .budget_bytes = 1 << 20});
  again.use(known);
  std::size_t taken[2];
  for (auto& each : taken) {
    again.start({}, 0, 0, 1);
    for (int step = 0; step < 10; ++step) static_cast<void>(again.next());
    each = blocks.size();
  }
  CHECK(taken[0] == taken[1]);
}

TEST_CASE("holding all slabs of the ring is refused, and releasing one resolves it") {
  for (int workers : {0, 1}) {
    data::DataLoader loader{in_memory(100),
                            data::SequentialSampler{},
                            data::PadCollate{},
                            {.batch_size = 4, .workers = workers, .prefetch = 2}};
    for (int round = 0; round < 2; ++round) {
      loader.start({}, 0, 0, 1);
      {
        auto const a = loader.next(), b = loader.next(), c = loader.next();
        CHECK_THROWS_WITH_AS(static_cast<void>(loader.next()), doctest::Contains("all 3 batches"), ConfigError);
      }
      for (Index step = 3; step < 25; ++step) CHECK(loader.next().step() == step);
    }
  }
}

TEST_CASE("prefetch crosses an epoch boundary and stops after the last epoch") {
  struct Counting {
    std::atomic<int>* reads;
    Index size() const { return 4; }
    Sample get(Index) const {
      ++*reads;
      return {};
    }
  };
  std::atomic<int> reads = 0;
  auto const reaches = [&](int n) {
    while (reads < n) std::this_thread::yield();
    return true;
  };
  data::DataLoader loader{
      Counting{&reads}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 4, .workers = 1, .prefetch = 2}};
  loader.start({}, 0, 0, 2);  // two epochs of one step
  CHECK(reaches(8));
  static_cast<void>(loader.next());
  static_cast<void>(loader.next());
  CHECK_THROWS_AS(static_cast<void>(loader.next()), ConfigError);
  CHECK(reads == 8);
}

TEST_CASE("a slow sample does not keep other workers from the next batch") {
  struct Gate {
    std::mutex mutex;
    std::condition_variable opened;
    bool open = false;
  } gate;
  struct Slow {
    Gate* gate;
    std::atomic<int>* others;
    Index size() const { return 8; }
    Sample get(Index i) const {
      if (i == 0) {
        std::unique_lock lock(gate->mutex);
        gate->opened.wait(lock, [&] { return gate->open; });
      } else {
        ++*others;
      }
      return {};
    }
  };
  std::atomic<int> others = 0;
  data::DataLoader loader{
      Slow{&gate, &others}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 4, .workers = 2}};
  loader.start({}, 0, 0, 1);
  while (others < 7) std::this_thread::yield();  // all but the waiting one, in both batches
  {
    std::lock_guard lock(gate.mutex);
    gate.open = true;
  }
  gate.opened.notify_all();
  CHECK(loader.next().step() == 0);
  CHECK(loader.next().step() == 1);
}

TEST_CASE("a slow write does not keep other workers from the rest of its batch") {
  struct Slow : Direct {
    std::atomic<int>* others;
    void read_into(Index i, data::Row<Sample> row) const {
      while (i == 0 && *others < 3) std::this_thread::yield();
      ++*others;
      Direct::read_into(i, row);
    }
  };
  for (int i = 0; i < 20; ++i) {
    std::atomic<int> others = 0;
    data::DataLoader loader{
        Slow{{4}, &others}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 4, .workers = 2}};
    loader.start({}, 0, 0, 1);
    CHECK(loader.next().rows() == 4);
  }
}

TEST_CASE("a restart or destruction waits for the sample that is being read, not for later ones") {
  struct Slow {
    std::atomic<int>* reads;
    Index size() const { return 4096; }
    Sample get(Index) const {
      ++*reads;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return {};
    }
  };
  std::atomic<int> reads = 0;
  constexpr int run = 4096 / 4;  // that the worker claims at a time
  {
    data::DataLoader loader{
        Slow{&reads}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 4096, .workers = 1}};
    for (int i = 0; i < 2; ++i) {
      loader.start({}, 0, 0, 1);
      CHECK(reads < run);
      while (reads <= i) std::this_thread::yield();
    }
  }
  CHECK(reads < run);
}

TEST_CASE("a loader can be left and destroyed at any time, a thousand times") {
  auto const dataset = in_memory(64);
  auto const threads = running_threads(), files = entries("/proc/self/fd");
  for (int i = 0; i < 1000; ++i) {
    data::DataLoader loader{dataset,
                            data::ShuffledSampler{},
                            data::PadCollate{},
                            {.batch_size = 4, .workers = i % 3, .prefetch = 1 + i % 4}};
    if (i % 7 != 0) loader.start({0, 1 + i % 2, 2}, 0, i % 5, 4);
    for (int k = 0; k < i % 6 && i % 7 != 0; ++k) {
      auto const held = loader.next();
      if (i % 11 == 0 && k == 2) loader.start({}, 1, 0, 2);
    }
  }
  CHECK(no_more_threads_than(threads));
  CHECK(entries("/proc/self/fd") == files);
}

TEST_CASE("a loader can be moved together with its batches") {
  data::DataLoader loader{in_memory(20), data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 4}};
  loader.start({}, 0, 0, 1);
  auto held = loader.next();
  auto moved = std::move(loader);
  held = moved.next();
  CHECK(held.step() == 1);
  auto const state = moved.state_after(held);
  auto const threads = running_threads();
  moved = data::DataLoader{in_memory(8), data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 4}};
  CHECK(held.batches()[0][&Sample::label].values(0) == 4);
  CHECK(moved.samples() == 8);
  CHECK(no_more_threads_than(threads - 1));
  CHECK(moved.state_before({}, 0, 0).fingerprint != state.fingerprint);
}

TEST_CASE("options and places out of range are refused by name") {
  auto const make = [](data::DataLoaderOptions options) {
    return data::DataLoader{in_memory(10), data::SequentialSampler{}, data::PadCollate{}, options};
  };
  CHECK_THROWS_WITH_AS(make({.batch_size = 0}), doctest::Contains("batch_size is 0; it must be within [1, 2^31)"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(make({.batch_size = -3}), doctest::Contains("batch_size is -3"), ConfigError);
  CHECK_THROWS_WITH_AS(make({.workers = -1}), doctest::Contains("workers is -1"), ConfigError);
  CHECK_THROWS_WITH_AS(make({.prefetch = -1}), doctest::Contains("prefetch is -1"), ConfigError);
  CHECK_THROWS_AS(make({.batch_size = Index{1} << 31}), ConfigError);
  CHECK_THROWS_AS(make({.workers = 1025}), ConfigError);
  CHECK_THROWS_AS(make({.prefetch = 1025}), ConfigError);
  auto largest = make({.batch_size = (Index{1} << 31) - 1});  // needs no more memory than the samples do
  largest.start({}, 0, 0, 1);
  CHECK(largest.next().batches()[0].rows() == 10);
  auto loader = make({.batch_size = 2});
  CHECK_THROWS_AS(loader.start({0, 1, 0}, 0, 0, 1), ConfigError);
  CHECK_THROWS_AS(loader.start({0, 0, 1}, 0, 0, 1), ConfigError);
  CHECK_THROWS_AS(loader.start({1, 1, 1}, 0, 0, 1), ConfigError);
  CHECK_THROWS_AS(loader.start({-1, 1, 2}, 0, 0, 1), ConfigError);
  CHECK_THROWS_AS(loader.start({}, 2, 0, 1), ConfigError);
  CHECK_THROWS_AS(loader.start({}, 0, 6, 1), ConfigError);
  CHECK_THROWS_AS(static_cast<void>(loader.next()), ConfigError);  // never started
  loader.start({}, 0, 4, 1);
  CHECK(loader.next().step() == 4);
}

TEST_CASE("the shapes of coming batches are known before samples are read, and batches of zeros have them") {
  data::PadCollate const collate{.multiple = 4};
  auto const check = [&](auto const& dataset) {
    data::DataLoader loader{dataset, data::ShuffledSampler{.seed = 3}, collate, {.batch_size = 3}};
    data::Split const split{1, 2, 3};
    auto const shapes = loader.coming_shapes(split, 0, 2, 3, 11);
    loader.start(split, 0, 2, 3);
    std::vector<Index> batches(shapes.size());
    for (int step = 0; step < 11; ++step)
      for (auto const held = loader.next(); auto const& batch : held.batches())
        for (std::size_t i = 0; i < shapes.size(); ++i) {
          auto const zeros = loader.zeros(shapes[i]);
          auto const &tokens = zeros.batch()[&Sample::tokens].values, &those = batch[&Sample::tokens].values;
          batches[i] += zeros.batch().rows() == batch.rows() && tokens.extent == those.extent;
          for (auto const token : tokens.span()) REQUIRE(token == 0);
        }
    Index all = 0;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      CHECK(shapes[i].batches == batches[i]);
      all += batches[i];
    }
    CHECK(all == 22);
    CHECK(shapes.size() > 3);
  };
  struct Reversed {
    static data::SampleExtent<Sample> extent(data::SampleExtent<Sample> const& of) { return of; }
    Sample operator()(Sample sample, data::SampleKey const&) const {
      std::reverse(sample.tokens.begin(), sample.tokens.end());
      return sample;
    }
  };
  check(in_memory(41));
  check(Direct{41});
  check(data::Cache{Direct{41}, 1000});
  std::vector<Index> last(41);
  std::iota(last.begin(), last.end(), Index{9});
  check(data::Transform{data::Subset{data::Cache{Direct{50}, 1000}, last}, Reversed{}});
  auto const knows = [](auto const& loader) {
    return requires { loader.coming_shapes({}, 0, 0, 1, 1); };
  };
  data::DataLoader read{Generated{41}, data::ShuffledSampler{}, collate, {.batch_size = 3}};
  CHECK_FALSE(knows(read));
  data::DataLoader named{data::InMemoryDataset{std::vector<Named>(9)}, data::ShuffledSampler{}, collate};
  CHECK_FALSE(knows(named));
}

TEST_CASE("a dataset whose size has changed needs a new loader, and an order by batches names its size") {
  struct Number {
    float value;
  };
  struct Growing {
    std::shared_ptr<std::vector<Number>> values = std::make_shared<std::vector<Number>>(4);
    Index size() const { return std::ssize(*values); }
    Number get(Index i) const { return (*values)[static_cast<std::size_t>(i)]; }
  };
  Growing const dataset;
  data::DataLoader loader(dataset, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 2, .workers = 0});
  loader.start({}, 0, 0, 1);
  CHECK(loader.next().batches()[0].rows() == 2);
  dataset.values->push_back({1});
  CHECK_THROWS_WITH_AS(loader.start({}, 0, 0, 1), doctest::Contains("make another loader"), ConfigError);
  struct Sampler {
    struct Order : data::SequentialSampler::Order {
      using data::SequentialSampler::Order::Order;
      Index samples() const { return 5; }
      Index batches() const { return 2; }
      Index max_rows() const { return 3; }
      Index rows(Index, Index batch) const { return batch == 0 ? 3 : 2; }
    };
    Order over(Growing const& data) const { return Order(data.size()); }
  };
  CHECK_THROWS_WITH_AS((data::DataLoader{dataset, Sampler{}, data::PadCollate{}}),
                       doctest::Contains("size() 5; it must be batches() * max_rows(), 2 * 3"), ConfigError);
}

TEST_CASE("a forked process that uses its parent's loader gets an error and does not wait") {
  struct Number {
    float value;
  };
  data::DataLoader loader(data::InMemoryDataset(std::vector<Number>(9)), data::SequentialSampler{}, data::PadCollate{},
                          {.workers = 2});
  loader.start({}, 0, 0, 1);
  auto const child = ::fork();
  if (child == 0) {
    auto const is_told = [](auto const& f) {
      try {
        f();
      } catch (ConfigError const& error) {
        return std::string(error.what()).find("make loaders after the fork") != std::string::npos;
      }
      return false;
    };
    bool const reported =
        is_told([&] { static_cast<void>(loader.next()); }) && is_told([&] { loader.start({}, 0, 0, 1); });
    { auto const gone = std::move(loader); }
    ::_exit(reported ? 0 : 1);
  }
  CHECK(loader.next().batches().size() == 1);
  int status = 1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("batches cause no allocation after the largest has been seen" *
          doctest::skip(!lockstep_test::counts_mallocs)) {
  for (int workers : {0, 1, 2}) {
    data::DataLoader loader{
        in_memory(96), data::ShuffledSampler{}, data::PadCollate{}, {.batch_size = 16, .workers = workers}};
    data::Split const split{0, 2, 2};
    loader.start(split, 0, 0, 40);
    double sum = 0;
    auto const epochs = [&](int count) {
      for (Index i = 0; i < count * loader.steps(split); ++i) {
        auto const held = loader.next();
        for (auto const& batch : held.batches()) sum += batch[&Sample::label].values(0);
      }
    };
    epochs(10);
    auto const before = lockstep_test::mallocs.load();
    epochs(20);
    CHECK(lockstep_test::mallocs.load() == before);
    CHECK(sum > 0);
  }
}

TEST_CASE("waiting time is counted") {
  struct Sleepy {
    Index size() const { return 2; }
    Sample get(Index) const {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      return {};
    }
  };
  for (int workers : {0, 1}) {
    data::DataLoader loader{
        Sleepy{}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 2, .workers = workers}};
    CHECK(loader.stats().wait_seconds == 0);
    loader.start({}, 0, 0, 1);
    static_cast<void>(loader.next());
    CHECK(loader.stats().wait_seconds > 0);
  }
}

TEST_CASE("batches may only be taken by the thread that has started the loader, so ranks cannot share one") {
  data::DataLoader loader{in_memory(10), data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 2}};
  std::thread([&] { loader.start({1, 1, 2}, 0, 0, 1); }).join();
  CHECK_THROWS_WITH_AS(static_cast<void>(loader.next()),
                       doctest::Contains("because ranks that are threads share a loader"), ConfigError);
  loader.start({0, 1, 2}, 0, 0, 1);
  CHECK(loader.next().rows() == 2);
  auto moved = std::move(loader);
  CHECK(moved.next().rows() == 2);
}

TEST_CASE("a sample too long for its row fails alone: by name, skipped or substituted") {
  auto const loader_with = [](data::OnFailure on_failure) {
    return data::DataLoader{Generated{8},
                            data::SequentialSampler{},
                            data::PadCollate{.length = 8},
                            {.batch_size = 8, .workers = 0, .on_failure = on_failure}};
  };
  auto raising = loader_with(data::OnFailure::raise);
  raising.start({}, 0, 0, 1);
  CHECK_THROWS_WITH_AS(
      raising.next(),
      doctest::Contains("sample 3 (position 3 of epoch 0, step 0) cannot be made: PadCollate: the sample "
                        "has length 10, and rows are padded to 8"),
      DataError);
  auto skipping = loader_with(data::OnFailure::skip), substituting = loader_with(data::OnFailure::substitute);
  skipping.start({}, 0, 0, 1);
  CHECK(skipping.next().rows() == 6);  // 3 and 6 are longer
  CHECK(skipping.stats().skipped == 2);
  substituting.start({}, 0, 0, 1);
  CHECK(substituting.next().rows() == 8);
}

namespace {

struct Note {
  std::string text;
};
struct Titled {
  std::string title;
  std::vector<std::int32_t> tokens;
  Note note;
};

}  // namespace

TEST_CASE("a string may be longer than the rows of padded members, which alone must fit") {
  std::vector<Titled> const samples{{"a title", {1, 2}, {"a note of some length"}}, {"", {1, 2, 3, 4, 5}, {}}};
  data::DataLoader loader{data::InMemoryDataset{samples}, data::SequentialSampler{}, data::PadCollate{.length = 4}};
  loader.start({}, 0, 0, 1);
  CHECK(loader.next().batches()[0][&Titled::title][0] == "a title");
  CHECK_THROWS_WITH_AS(static_cast<void>(loader.next()), doctest::Contains("the sample has length 5"), DataError);
}

TEST_CASE("a collate of the user checks the lengths of each sample") {
  struct Short : data::PadCollate {
    void check(std::array<Index, 1> const& lengths) const {
      if (lengths[0] > 8) throw DataError("too long");
    }
  };
  data::DataLoader loader{
      Generated{8}, data::SequentialSampler{}, Short{}, {.batch_size = 8, .on_failure = data::OnFailure::skip}};
  loader.start({}, 0, 0, 1);
  CHECK(loader.next().rows() == 6);  // 3 and 6 are longer
}

TEST_CASE("a batch released while its loader restarts is not given twice") {
  struct Gated {
    std::atomic<bool>* reading;
    std::atomic<bool>* open;
    Index size() const { return 40; }
    Sample get(Index i) const {
      if (i >= 2) {
        *reading = true;
        while (!*open) std::this_thread::yield();
      }
      return {{}, static_cast<int>(i)};
    }
  };
  std::atomic<bool> reading = false, open = false;
  data::DataLoader loader{Gated{&reading, &open},
                          data::SequentialSampler{},
                          data::PadCollate{},
                          {.batch_size = 2, .workers = 1, .prefetch = 1}};
  loader.start({}, 0, 0, 1);
  auto held = std::make_optional(loader.next());
  while (!reading) std::this_thread::yield();
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // by then the start below waits for the worker
    held.reset();
    open = true;
  });
  loader.start({}, 0, 0, 1);
  other.join();
  auto const first = loader.next(), second = loader.next();
  CHECK_THROWS_WITH_AS(loader.next(), doctest::Contains("all 2 batches of the ring are held"), ConfigError);
}

TEST_CASE("a loader that observes its workers sees that one waits for a lock") {
  struct Locked {
    std::mutex* mutex;
    Index size() const { return 4; }
    Sample get(Index i) const {
      std::lock_guard const lock(*mutex);
      return {{}, static_cast<int>(i)};
    }
  };
  std::mutex mutex;
  data::DataLoader loader{
      Locked{&mutex}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 2, .workers = 1}};
  loader.start({}, 0, 0, 1);
  static_cast<void>(loader.next());
  static_cast<void>(loader.next());  // the last one, so that `start` below does not wait for a worker without the lock
  CHECK(loader.stats().looks == 0);
  loader.observe();
  std::atomic<bool> held = false;
  std::thread other([&] {
    std::lock_guard const lock(mutex);
    held = true;
    auto stats = loader.stats();  // 1000 looks take some seconds, where the system does not show calls of threads
    while (stats.locked == 0 && stats.looks < 1000) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      stats = loader.stats();
    }
  });
  while (!held) std::this_thread::yield();
  loader.start({}, 0, 0, 1);
  CHECK(loader.next().rows() == 2);
  other.join();
  CHECK(loader.stats().looks > 0);
  if (::access("/proc/self/syscall", R_OK) == 0) CHECK(loader.stats().locked > 0);
}
