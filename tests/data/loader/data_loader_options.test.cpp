// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/loader/data_loader_options.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/data/sampler/token_budget_sampler.hpp>

#include "no_threads.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

struct Sample {
  std::vector<std::int32_t> tokens;
  int label = 0;
};
Sample sample(Index i) {
  return {std::vector<std::int32_t>(static_cast<std::size_t>(i * 7 % 11), static_cast<int>(i)), static_cast<int>(i)};
}
bool broken(Index i) { return i % 10 == 3 || i == 20; }

struct Breaking {
  Index count = 60;
  Index size() const { return count; }
  Sample get(Index i) const {
    if (broken(i)) throw std::runtime_error("file is gone");
    return sample(i);
  }
  std::string name(Index i) const { return "clips/" + std::to_string(i) + ".npy"; }
};
/// Fails only when the row is written.
struct BreakingLate {
  Index count = 60;
  Index size() const { return count; }
  Sample get(Index i) const { return sample(i); }
  data::SampleExtent<Sample> extent(Index i) const { return {{i * 7 % 11}}; }
  void read_into(Index i, data::Row<Sample> row) const {
    for (auto& token : row[&Sample::tokens]) token = static_cast<int>(i);
    row[&Sample::label] = static_cast<int>(i);
    if (broken(i)) throw std::runtime_error("file is cut off");
  }
};

struct Seen {
  Index step, position;
  int label;
  friend auto operator<=>(Seen const&, Seen const&) = default;
};
/// Returns an epoch of all shards.
template <class D>
std::vector<Seen> epoch_of(D const& dataset, data::DataLoaderOptions const& options, int shards = 2) {
  data::DataLoader loader{dataset, data::ShuffledSampler{.seed = 4}, data::PadCollate{.value = -1}, options};
  data::Split const split{0, shards, shards};
  loader.start(split, 2, 0, 3);
  std::vector<Seen> seen;
  for (Index i = 0; i < loader.steps(split); ++i) {
    auto const held = loader.next();
    for (auto const& batch : held.batches()) {
      for (Index r = 0; r < batch.rows(); ++r) {
        auto const label = batch[&Sample::label].values(r);
        auto const& tokens = batch[&Sample::tokens];
        REQUIRE(tokens.lengths(r) == label * 7 % 11);
        for (Index k = 0; k < tokens.values.extent[1]; ++k)
          REQUIRE(tokens.values(r, k) == (k < tokens.lengths(r) ? label : -1));
        seen.push_back({held.step(), batch.positions()(r), label});
      }
    }
  }
  return seen;
}

}  // namespace

TEST_CASE_TEMPLATE("unreadable samples are skipped: all others appear once, at their places", D, Breaking,
                   BreakingLate) {
  auto const order = data::ShuffledSampler{.seed = 4}.over(D{});
  std::vector<Seen> expected;
  for (Index p = 0; p < 60; ++p)
    if (auto const i = order.in(2)(p); !broken(i)) expected.push_back({p / 8, p, static_cast<int>(i)});
  for (int workers : {0, 1, 3}) {
    auto seen = epoch_of(D{}, {.batch_size = 4, .workers = workers, .on_failure = data::OnFailure::skip});
    std::sort(seen.begin(), seen.end());
    CHECK(seen == expected);
  }
}

TEST_CASE_TEMPLATE("unreadable samples are substituted, equally for any workers", D, Breaking, BreakingLate) {
  auto const order = data::ShuffledSampler{.seed = 4}.over(D{});
  auto const make = [](int workers) {
    auto seen = epoch_of(D{}, {.batch_size = 4, .workers = workers, .on_failure = data::OnFailure::substitute});
    std::sort(seen.begin(), seen.end());
    return seen;
  };
  auto const first = make(0);
  REQUIRE(first.size() == 60);
  for (Index p = 0; p < 60; ++p) {
    auto const& row = first[static_cast<std::size_t>(p)];
    CHECK(row.position == p);
    CHECK(!broken(row.label));
    if (auto const i = order.in(2)(p); !broken(i)) CHECK(row.label == i);
  }
  for (int workers : {1, 3}) CHECK(make(workers) == first);
}

TEST_CASE("a substitute that fails when it is written is itself substituted") {
  struct Half {
    Index size() const { return 60; }
    Sample get(Index i) const { return sample(i); }
    data::SampleExtent<Sample> extent(Index i) const { return {{i * 7 % 11}}; }
    void read_into(Index i, data::Row<Sample> row) const {
      if (i % 2 == 0) throw std::runtime_error("file is cut off");
      for (auto& token : row[&Sample::tokens]) token = static_cast<int>(i);
      row[&Sample::label] = static_cast<int>(i);
    }
  };
  auto const seen = epoch_of(Half{}, {.batch_size = 4, .workers = 1, .on_failure = data::OnFailure::substitute});
  REQUIRE(seen.size() == 60);
  for (auto const& row : seen) CHECK(row.label % 2 == 1);
}

TEST_CASE_TEMPLATE("a sampler that throws while it chooses a substitute fails the batch", D, Breaking, BreakingLate) {
  /// Has the dataset's order, and fails when it is asked for more indices than an epoch has.
  struct Failing {
    struct Order {
      Index count;
      std::shared_ptr<std::atomic<Index>> asked = std::make_shared<std::atomic<Index>>(0);
      Index size() const { return count; }
      auto in(Index) const {
        return [*this](Index position) {
          if (++*asked > count) throw std::runtime_error("the list of samples is gone");
          return position;
        };
      }
    };
    Order over(D const& dataset) const { return {dataset.size()}; }
  };
  // A thread reads the first samples before it asks for the others.
  for (int const workers : {0, std::is_same_v<D, BreakingLate> ? 1 : 0}) {
    data::DataLoader loader{
        D{8},
        Failing{},
        data::PadCollate{},
        {.batch_size = 8, .workers = workers, .deadline_seconds = 20, .on_failure = data::OnFailure::substitute}};
    loader.start({}, 0, 0, 1);
    CHECK_THROWS_WITH_AS(
        static_cast<void>(loader.next()),
        doctest::Contains("(position 3 of epoch 0, step 0) cannot be made: the list of samples is gone"), DataError);
  }
}

namespace {

/// Samples 0 to 5 of 8 fail, so that most substitutes fail, too.
struct MostlyBroken {
  Index size() const { return 8; }
  Sample get(Index i) const {
    if (i < 6) throw std::runtime_error("file is gone");
    return sample(i);
  }
};
struct MostlyBrokenLate : BreakingLate {
  MostlyBrokenLate() : BreakingLate{8} {}
  void read_into(Index i, data::Row<Sample> row) const {
    if (i < 6) throw std::runtime_error("file is cut off");
    BreakingLate::read_into(i, row);
  }
};

}  // namespace

TEST_CASE_TEMPLATE("a replaced sample counts once, however many substitutes fail", D, MostlyBroken, MostlyBrokenLate) {
  for (int const workers : {0, 1}) {
    data::DataLoader loader{D{},
                            data::SequentialSampler{},
                            data::PadCollate{},
                            {.batch_size = 2, .workers = workers, .on_failure = data::OnFailure::substitute}};
    loader.start({}, 0, 0, 1);
    for (Index step = 0; step < loader.steps({}); ++step) CHECK(loader.next().rows() == 2);
    CHECK(loader.stats().substituted == 6);
  }
}

TEST_CASE("a substitute comes from its row's batch, also in batches that repeat to fill a micro-step") {
  struct Texts {
    Index broken;
    Index size() const { return 34; }
    Sample get(Index i) const {
      if (i == broken) throw std::runtime_error("file is gone");
      return {std::vector<std::int32_t>(i < 32 ? 2 : 16), static_cast<int>(i)};
    }
  };
  std::vector<std::int32_t> lengths(34, 2);
  lengths[32] = lengths[33] = 16;  // a batch of its own for each
  data::TokenBudgetSampler const sampler{.lengths = lengths, .tokens = 16, .min_batches = 1};
  REQUIRE(sampler.over(Texts{0}).batches() == 6);
  data::Split const split{0, 4, 4};  // two batches of the second micro-step repeat
  Index over_budget = 0;
  for (Index broken = 0; broken < 34; ++broken) {
    data::DataLoader loader{Texts{broken},
                            sampler,
                            data::PadCollate{},
                            {.workers = 0, .tail = data::Tail::pad, .on_failure = data::OnFailure::substitute}};
    for (Index epoch = 0; epoch < 5; ++epoch) {
      loader.start(split, epoch, 0, epoch + 1);
      for (Index step = 0; step < 2; ++step) {
        try {
          auto const held = loader.next();
          for (auto const& batch : held.batches()) over_budget += batch[&Sample::tokens].values.size() > 16;
        } catch (DataError const&) {  // no other sample in the batch
        }
      }
    }
  }
  CHECK(over_budget == 0);
}

TEST_CASE("an allocation failure is not a sample failure") {
  struct Exhausted : Breaking {
    Sample get(Index) const { throw std::bad_alloc(); }
  };
  for (auto policy : {data::OnFailure::skip, data::OnFailure::substitute}) {
    data::DataLoader loader{Exhausted{}, data::SequentialSampler{}, data::PadCollate{}, {.on_failure = policy}};
    loader.start({}, 0, 0, 1);
    CHECK_THROWS_AS(static_cast<void>(loader.next()), DataError);
    CHECK(loader.stats().skipped + loader.stats().substituted == 0);
  }
}

TEST_CASE("failures are counted, and the latest is reported by name") {
  for (auto policy : {data::OnFailure::skip, data::OnFailure::substitute}) {
    data::DataLoader loader{
        Breaking{20}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 20, .on_failure = policy}};
    loader.start({}, 0, 0, 1);
    static_cast<void>(loader.next());
    auto const stats = loader.stats();
    CHECK(stats.skipped == (policy == data::OnFailure::skip ? 2 : 0));
    CHECK(stats.substituted == (policy == data::OnFailure::skip ? 0 : 2));
    CHECK(stats.last_failure.find("(clips/") != std::string::npos);
    CHECK(stats.last_failure.find("file is gone") != std::string::npos);
  }
}

TEST_CASE("each failed sample is listed once, up to a limit") {
  data::DataLoader few{Breaking{20},
                       data::SequentialSampler{},
                       data::PadCollate{},
                       {.batch_size = 5, .on_failure = data::OnFailure::skip}};
  few.start({}, 0, 0, 3);
  for (int step = 0; step < 12; ++step) static_cast<void>(few.next());
  auto const stats = few.stats();
  CHECK(stats.skipped == 6);
  REQUIRE(stats.failures.size() == 2);
  for (auto const& failure : stats.failures) {
    CAPTURE(failure.reason);
    CHECK(failure.reason.rfind("sample " + std::to_string(failure.sample) + " (clips/", 0) == 0);
    CHECK(failure.reason.find("file is gone") != std::string::npos);
  }
  data::DataLoader many{Breaking{2000},
                        data::SequentialSampler{},
                        data::PadCollate{},
                        {.batch_size = 2000, .on_failure = data::OnFailure::skip}};
  many.start({}, 0, 0, 1);
  static_cast<void>(many.next());
  CHECK(many.stats().skipped > Index{data::LoaderStats::most_failures});
  CHECK(many.stats().failures.size() == data::LoaderStats::most_failures);
}

TEST_CASE("if all samples fail, skipping gives empty batches and substituting gives up") {
  struct Nothing : Breaking {
    Sample get(Index) const { throw std::runtime_error("no disk"); }
  };
  data::DataLoader skipping{
      Nothing{{4}}, data::SequentialSampler{}, data::PadCollate{}, {.on_failure = data::OnFailure::skip}};
  skipping.start({}, 0, 0, 1);
  CHECK(skipping.next().batches()[0].rows() == 0);
  data::DataLoader substituting{
      Nothing{{4}}, data::SequentialSampler{}, data::PadCollate{}, {.on_failure = data::OnFailure::substitute}};
  substituting.start({}, 0, 0, 1);
  CHECK_THROWS_WITH_AS(static_cast<void>(substituting.next()), doctest::Contains("no disk"), DataError);
  struct NothingWritten : BreakingLate {
    void read_into(Index, data::Row<Sample>) const { throw std::runtime_error("file is cut off"); }
  };
  data::DataLoader writing{NothingWritten{{4}},
                           data::SequentialSampler{},
                           data::PadCollate{},
                           {.deadline_seconds = 20, .on_failure = data::OnFailure::substitute}};
  writing.start({}, 0, 0, 1);
  CHECK_THROWS_WITH_AS(static_cast<void>(writing.next()), doctest::Contains("file is cut off"), DataError);
}

TEST_CASE("a failure's message has the sample's name and its position in the order") {
  data::ShuffledSampler const sampler{.seed = 4};
  auto const order = sampler.over(Breaking{});
  Index position = 0;
  while (!broken(order.in(0)(position))) ++position;
  auto const number = std::to_string(order.in(0)(position)), place = std::to_string(position);
  REQUIRE(number != place);
  data::DataLoader loader{Breaking{}, sampler, data::PadCollate{}, {.batch_size = 60}};
  loader.start({}, 0, 0, 1);
  auto const message =
      "DataLoader: sample " + number + " (clips/" + number + ".npy) (position " + place +
      " of epoch 0, step 0) cannot be made: file is gone; to train without such samples, set on_failure "
      "(--on-failure) to skip";
  CHECK_THROWS_WITH_AS(static_cast<void>(loader.next()), message.c_str(), DataError);
}

TEST_CASE("a deadline while the sampler chooses samples names no sample") {
  struct Clips : Breaking {
    std::vector<std::string> names = std::vector<std::string>(16, "clip");
    std::string name(Index i) const { return names.at(static_cast<std::size_t>(i)); }
  };
  struct Waiting {
    struct Order {
      std::atomic<bool>*asked, *open;
      Index size() const { return 16; }
      auto in(Index) const {
        *asked = true;
        while (!*open) std::this_thread::yield();
        return [](Index position) { return position; };
      }
    };
    std::atomic<bool>*asked, *open;
    Order over(Clips const&) const { return {asked, open}; }
  };
  std::atomic<bool> asked = false, open = false;
  data::DataLoader loader{Clips{{16}},
                          Waiting{&asked, &open},
                          data::PadCollate{},
                          {.batch_size = 4, .workers = 1, .deadline_seconds = 0.02}};
  loader.start({}, 0, 0, 1);
  while (!asked) std::this_thread::yield();  // a worker that has not begun has nothing to do
  auto const* const message = "worker 0 asks the sampler for samples, running for ";
  for (int i = 0; i < 3; ++i)
    CHECK_THROWS_WITH_AS(static_cast<void>(loader.next()), doctest::Contains(message), DataError);
  open = true;
}

TEST_CASE("a deadline names the stuck sample, and the next call waits again") {
  struct Stuck : Breaking {
    std::atomic<bool>* open;
    Index stuck;
    Sample get(Index i) const {
      while (i == stuck && !*open) std::this_thread::yield();
      return sample(i);
    }
  };
  std::atomic<bool> open = false;
  data::ShuffledSampler const sampler{.seed = 4};
  auto const stuck = sampler.over(Breaking{16}).in(0)(5);
  auto const number = std::to_string(stuck);
  REQUIRE(stuck != 5);  // a sample's number is not its position
  data::DataLoader loader{Stuck{{16}, &open, stuck},
                          sampler,
                          data::PadCollate{},
                          {.batch_size = 4, .workers = 2, .deadline_seconds = 0.02}};
  loader.start({}, 0, 0, 1);
  CHECK(loader.next().step() == 0);
  CHECK_THROWS_WITH_AS(static_cast<void>(loader.next()), doctest::Contains("for epoch 0, step 1; worker "), DataError);
  auto const reads = " reads sample " + number + " (clips/" + number + ".npy), position 5, running for ";
  CHECK_THROWS_WITH_AS(static_cast<void>(loader.next()), doctest::Contains(reads.c_str()), DataError);
  auto const milliseconds = [&] {
    std::string text;
    try {
      static_cast<void>(loader.next());
    } catch (DataError const& error) {
      text = error.what();
    }
    auto const at = text.find(reads);
    CHECK(at != std::string::npos);
    return at == std::string::npos ? 0 : std::stoi(text.substr(at + reads.size()));
  };
  auto const so_far = milliseconds();
  CHECK(milliseconds() >= so_far + 15);  // waited for 20 more
  bool reported = false;                 // that the other worker has filled the free slabs
  for (int tries = 0; tries < 500 && !reported; ++tries) {
    try {
      static_cast<void>(loader.next());
    } catch (DataError const& error) {
      reported = std::string(error.what()).find(" has nothing to do; ") != std::string::npos;
    }
  }
  CHECK(reported);
  open = true;
  for (bool made = false; !made;) {
    try {
      CHECK(loader.next().step() == 1);
      made = true;
    } catch (DataError const&) {  // a busy machine
    }
  }
}

TEST_CASE("a deadline beyond the clock's range never expires") {
  struct Slow : Breaking {
    Sample get(Index i) const {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return sample(i);
    }
  };
  for (double const seconds : {1e10, 1e300, std::numeric_limits<double>::infinity()}) {
    data::DataLoader loader{
        Slow{{4}}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 4, .deadline_seconds = seconds}};
    loader.start({}, 0, 0, 1);
    CHECK(loader.next().rows() == 4);
  }
}

TEST_CASE("unordered delivery overtakes a slow sample within its epoch, with equal batches") {
  struct Slow : Breaking {
    std::atomic<bool>* open;
    std::atomic<int>* begun;
    Sample get(Index i) const { return sample(i); }
    Sample get(Index i, data::SampleKey const& key) const {
      ++*begun;
      while (i == 0 && key.epoch == 0 && !*open) std::this_thread::yield();
      return sample(i);
    }
  };
  std::atomic<bool> open = false;
  std::atomic<int> begun = 0;
  data::DataLoader loader{
      Slow{{16}, &open, &begun},
      data::SequentialSampler{},
      data::PadCollate{},
      {.batch_size = 4, .workers = 2, .prefetch = 5, .deadline_seconds = 0.02, .delivery = data::Delivery::unordered}};
  loader.start({}, 0, 0, 2);
  auto const next = [&] {
    for (;;) {
      try {
        return loader.next();
      } catch (DataError const&) {  // a busy machine
      }
    }
  };
  std::set<Index> steps;
  for (int i = 0; i < 3; ++i) {
    auto const held = next();
    CHECK(held.epoch() == 0);
    CHECK(held.batches()[0][&Sample::label].values(0) == held.step() * 4);
    steps.insert(held.step());
  }
  CHECK(steps == std::set<Index>{1, 2, 3});
  while (begun < 32) std::this_thread::yield();                  // all batches of epoch 1 but the last are ready
  CHECK_THROWS_AS(static_cast<void>(loader.next()), DataError);  // and none of them arrives before step 0
  open = true;
  CHECK(next().epoch() == 0);
  CHECK(next().epoch() == 1);
}

TEST_CASE("a budget bounds the ring's slabs; one batch always fits") {
  struct Large {
    Index size() const { return 64; }
    Sample get(Index) const { return {std::vector<std::int32_t>(500'000), 0}; }
  };
  auto const bytes = [](Index budget) {
    data::DataLoader loader{Large{},
                            data::SequentialSampler{},
                            data::PadCollate{},
                            {.batch_size = 4, .workers = 2, .prefetch = 6, .budget_bytes = budget}};
    loader.start({}, 0, 0, 1);
    for (int i = 0; i < 12; ++i) static_cast<void>(loader.next());
    std::vector<decltype(loader.next())> held;  // if none is released, the ring fills up to its limit
    for (int i = 0; i < 4 && budget != 1; ++i) held.push_back(loader.next());
    return loader.stats().bytes;
  };
  constexpr Index batch = 4 * 500'000 * 4 + 128;  // with its lengths and labels
  CHECK(bytes(0) >= 4 * batch);
  CHECK(bytes(1) == batch);
  CHECK(bytes(2 * batch) >= 4 * batch);  // held memory counts, and `next` still delivers
  data::DataLoader loader{Large{}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 4, .budget_bytes = 1}};
  loader.start({}, 0, 0, 1);
  for (Index i = 0; i < 2; ++i) {
    {
      auto const first = loader.next(), second = loader.next();
      CHECK(second.step() == 2 * i + 1);
      CHECK(loader.stats().bytes >= 2 * batch);
    }
    CHECK(loader.next().rows() == 4);
    CHECK(loader.stats().bytes == batch);  // the others have been freed
    loader.start({}, 0, 2 * i + 2, 1);
  }
}

TEST_CASE("memory that a collate allocates after the rows are written counts towards the ring") {
  for (int workers : {0, 1}) {
    auto const bytes = [&](data::SegmentPlans plans) {
      data::DataLoader loader{Breaking{3},
                              data::SequentialSampler{},
                              data::PadCollate{.length = 500'000, .segment_plans = plans},
                              {.batch_size = 3, .workers = workers}};
      loader.start({}, 0, 0, 1);
      CHECK(loader.next().rows() == 3);
      return loader.stats().bytes;
    };
    CHECK(bytes(data::SegmentPlans::build) >= bytes(data::SegmentPlans::none) + 3 * 500'000 * 4);  // the ids
  }
}

TEST_CASE("within a budget, only batches that fit are prefetched") {
  struct Large {
    std::atomic<int>* reads;
    Index size() const { return 64; }
    Sample get(Index) const {
      ++*reads;
      return {std::vector<std::int32_t>(500'000), 0};
    }
  };
  std::atomic<int> reads = 0;
  constexpr Index batch = 4 * 500'000 * 4 + 128;
  data::DataLoader loader{Large{&reads},
                          data::SequentialSampler{},
                          data::PadCollate{},
                          {.batch_size = 4, .workers = 2, .prefetch = 6, .budget_bytes = 2 * batch}};
  loader.start({}, 0, 0, 1);
  while (reads < 8) std::this_thread::yield();  // before the first request
  {
    auto const held = loader.next();
    CHECK(loader.next().step() == 1);
    CHECK(reads <= 4 * 3);
    CHECK(loader.stats().bytes <= 2 * batch);
  }
  for (int i = 2; i < 16; ++i) {
    CHECK(loader.next().step() == i);
    CHECK(loader.stats().bytes <= 2 * batch);
  }
}

TEST_CASE("replay delivers finished batches again and again, and reads no further samples") {
  struct Counting {
    std::atomic<int>* reads;
    Index size() const { return 64; }
    Sample get(Index i) const {
      ++*reads;
      return sample(i);
    }
  };
  for (int workers : {0, 1}) {
    std::atomic<int> reads = 0;
    data::DataLoader loader{Counting{&reads},
                            data::SequentialSampler{},
                            data::PadCollate{},
                            {.batch_size = 4, .workers = workers, .prefetch = 2, .replay = data::Replay::cached}};
    loader.start({}, 0, 0, 5);
    for (Index i = 0; i < 80; ++i) {
      auto const held = loader.next();
      CHECK(held.epoch() * 16 + held.step() == i);
      CHECK(held.batches()[0].rows() == 4);
    }
    CHECK(reads <= 3 * 4);
    if (workers == 0) CHECK(loader.stats().ready == 79);  // all but the first
    loader.start({1, 1, 2}, 0, 0, 5);                     // another shard's batches are others
    for (int i = 0; i < 8; ++i) CHECK(loader.next().batches()[0].positions()(0) % 2 == 1);
    loader.replay(data::Replay::none);
    loader.start({}, 0, 0, 1);
    for (Index i = 0; i < 16; ++i) static_cast<void>(loader.next());
    CHECK(reads >= 64);
  }
  std::atomic<int> reads = 0;
  data::DataLoader loader{Counting{&reads},
                          data::SequentialSampler{},
                          data::PadCollate{},
                          {.batch_size = 4, .workers = 0, .budget_bytes = 1, .replay = data::Replay::cached}};
  loader.start({}, 0, 0, 5);
  for (int i = 0; i < 2; ++i) auto const kept = loader.next(), given_back = loader.next();
  CHECK(reads == 3 * 4);  // slabs freed for the budget are filled again
}

TEST_CASE("a loader that replaces another replays like that one, also from a state") {
  struct Counting {
    std::atomic<int>* reads;
    Index size() const { return 64; }
    Sample get(Index i) const {
      ++*reads;
      return sample(i);
    }
  };
  std::atomic<int> reads = 0;
  auto const make = [&](data::Replay replay) {
    return data::DataLoader{
        Counting{&reads}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 4, .replay = replay}};
  };
  auto loader = make(data::Replay::none);
  loader = make(data::Replay::cached);
  loader.resume({}, loader.state_before({}, 0, 4), 5);
  for (Index i = 4; i < 80; ++i) CHECK(loader.next().rows() == 4);
  CHECK(reads <= 3 * 4);
}

TEST_CASE("workers are added while all are busy and training waits, up to a limit") {
  struct Slow {
    Index size() const { return 1000; }
    Sample get(Index i) const {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      return sample(i);
    }
  };
  data::DataLoader loader{
      Slow{}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 4, .workers = 1, .max_workers = 3}};
  loader.start({}, 0, 0, 1);
  for (Index i = 0; i < 250; ++i) CHECK(loader.next().batches()[0][&Sample::label].values(0) == i * 4);
  CHECK(loader.stats().workers > 1);
  CHECK(loader.stats().workers <= 3);
}

TEST_CASE("no worker is added while another is idle") {
  struct Stuck : Breaking {
    std::atomic<bool>*begun, *open;
    Sample get(Index i) const {
      *begun = true;
      while (!*open) std::this_thread::yield();
      return sample(i);
    }
  };
  std::atomic<bool> begun = false, open = false;
  data::DataLoader loader{Stuck{{1}, &begun, &open},
                          data::SequentialSampler{},
                          data::PadCollate{},
                          {.workers = 2, .max_workers = 4, .deadline_seconds = 0.01}};
  loader.start({}, 0, 0, 1);
  while (!begun) std::this_thread::yield();
  for (int i = 0; i < 3; ++i) CHECK_THROWS_AS(static_cast<void>(loader.next()), DataError);
  CHECK(loader.stats().workers == 2);
  open = true;
}

TEST_CASE("failing to start a required thread is an error; an additional one is optional") {
  struct Slow : Breaking {
    Sample get(Index i) const {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      return sample(i);
    }
  };
  auto const make = [](Index samples, int most) {
    return data::DataLoader{
        Slow{{samples}}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 4, .max_workers = most}};
  };
  auto refused = make(40, 0), one = make(400, 3);
  one.start({}, 0, 0, 1);
  {
    NoThreads const now;
    CHECK_THROWS_WITH_AS(refused.start({}, 0, 0, 1), doctest::Contains("the system refused worker 1 of 1 ("),
                         ConfigError);
    CHECK_THROWS_WITH_AS(static_cast<void>(refused.next()), doctest::Contains("an epoch has 10 steps of this split"),
                         ConfigError);
    for (Index i = 0; i < 5; ++i) CHECK(one.next().step() == i);
    CHECK(one.stats().workers == 1);
  }
  refused.start({}, 0, 0, 1);
  for (Index i = 0; i < 10; ++i) CHECK(refused.next().step() == i);
  for (Index i = 5; i < 100; ++i) CHECK(one.next().step() == i);
  CHECK(one.stats().workers > 1);
}

TEST_CASE("each worker has its own reader if the dataset makes readers") {
  struct Decoding {
    struct Worker {
      std::atomic<int>* inside;
      std::vector<std::int32_t> buffer{};
      int users = 0;
      Sample get(Index i) {
        CHECK(++users == 1);
        buffer.assign(static_cast<std::size_t>(i * 7 % 11), static_cast<int>(i));
        Sample out{buffer, static_cast<int>(i)};
        --users;
        return out;
      }
    };
    std::atomic<int>* made;
    Index size() const { return 64; }
    Sample get(Index i) const { return sample(i); }
    Worker worker() const {
      ++*made;
      return {made};
    }
  };
  static_assert(data::HasWorkers<Decoding> && !data::HasWorkers<Breaking>);
  for (int workers : {0, 1, 3}) {
    std::atomic<int> made = 0;
    CHECK(epoch_of(Decoding{&made}, {.batch_size = 4, .workers = workers}).size() == 64);
    CHECK(made == std::max(workers, 1));
  }
}

TEST_CASE("a sample's random numbers depend on seed, epoch and position, not on workers, ranks or batch size") {
  struct Noisy {
    Index size() const { return 60; }
    Sample get(Index i) const { return get(i, {0, 0, i}); }
    Sample get(Index, data::SampleKey const& key) const {
      return sample(static_cast<Index>(key.random("noise")(0)[0] % 1'000'000));
    }
  };
  static_assert(data::DrawsSamples<Noisy> && !data::DrawsSamples<Breaking>);
  auto const labels = [](data::DataLoaderOptions const& options, int shards) {
    auto seen = epoch_of(Noisy{}, options, shards);
    for (auto& row : seen) row.step = 0;
    std::sort(seen.begin(), seen.end());
    return seen;
  };
  auto const expected = labels({.batch_size = 4, .workers = 0, .seed = 1}, 1);
  std::set<int> different;
  for (auto const& row : expected) different.insert(row.label);
  CHECK(different.size() > 50);
  CHECK(labels({.batch_size = 4, .workers = 2, .seed = 1}, 1) == expected);
  CHECK(labels({.batch_size = 7, .workers = 1, .seed = 1}, 3) == expected);
  CHECK(labels({.batch_size = 4, .workers = 0, .seed = 2}, 1) != expected);
}

TEST_CASE("the loader's work is counted") {
  for (int workers : {0, 2}) {
    data::DataLoader loader{Breaking{},
                            data::SequentialSampler{},
                            data::PadCollate{},
                            {.batch_size = 4, .workers = workers, .on_failure = data::OnFailure::skip}};
    CHECK(loader.stats().elapsed_seconds == 0);
    loader.start({}, 0, 0, 1);
    for (int i = 0; i < 15; ++i) static_cast<void>(loader.next());
    auto const stats = loader.stats();
    CHECK(stats.delivered == 15);
    CHECK(stats.samples == 53);
    CHECK(stats.skipped == 7);
    CHECK(stats.slots == 3);
    CHECK(stats.workers == workers);
    CHECK(stats.read_seconds > 0);
    CHECK(stats.plan_seconds > 0);
    CHECK(stats.write_seconds > 0);
    CHECK(stats.finish_seconds > 0);
    CHECK(stats.bytes > 0);
    CHECK(stats.elapsed_seconds > 0);
    CHECK(!stats.verdict().empty());
    loader.start({}, 0, 0, 10'000);
    CHECK(loader.stats().elapsed_seconds >= stats.elapsed_seconds);  // since the first start
    for (int i = 0; workers > 0 && i < 10'000 && loader.stats().idle_seconds == 0; ++i)
      static_cast<void>(loader.next());
    CHECK((loader.stats().idle_seconds > 0) == (workers > 0));
  }
}

TEST_CASE("options out of range are refused by name") {
  auto const make = [](data::DataLoaderOptions const& options) {
    return data::DataLoader{Breaking{}, data::SequentialSampler{}, data::PadCollate{}, options};
  };
  CHECK_THROWS_WITH_AS(make({.max_workers = 1025}), doctest::Contains("max_workers is 1025"), ConfigError);
  CHECK_THROWS_WITH_AS(make({.deadline_seconds = -1}), doctest::Contains("deadline_seconds is -1"), ConfigError);
  CHECK_THROWS_WITH_AS(make({.deadline_seconds = -0.5}), doctest::Contains("deadline_seconds is -0.5"), ConfigError);
  CHECK_THROWS_WITH_AS(make({.deadline_seconds = std::nan("")}), doctest::Contains("is nan"), ConfigError);
  CHECK_THROWS_WITH_AS(make({.budget_bytes = -5}), doctest::Contains("budget_bytes is -5"), ConfigError);
}

TEST_CASE("a request beyond an epoch's steps is refused with the split's number of steps") {
  struct Whole : Breaking {
    Sample get(Index i) const { return sample(i); }
  };
  data::DataLoader loader{Whole{{10}}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 2}};
  data::Split const second{1, 1, 2};
  loader.start(second, 0, 0, 1);
  CHECK(loader.steps() == 5);
  CHECK(loader.steps(second) == 3);
  for (Index i = 0; i < loader.steps(second); ++i) CHECK(loader.next().step() == i);
  CHECK_THROWS_WITH_AS(static_cast<void>(loader.next()),
                       doctest::Contains("an epoch has 3 steps of this split, see steps(split)"), ConfigError);
}

TEST_CASE("a dataset without samples has no batch, and a negative size is refused") {
  data::DataLoader loader{Breaking{.count = 0}, data::ShuffledSampler{}, data::PadCollate{}};
  CHECK(loader.steps() == 0);
  loader.start({}, 0, 0, 3);
  CHECK_THROWS_WITH_AS(static_cast<void>(loader.next()), doctest::Contains("no batch is left of epochs with 0 samples"),
                       ConfigError);
  CHECK_THROWS_WITH_AS((data::DataLoader{Breaking{.count = -3}, data::ShuffledSampler{}, data::PadCollate{}}),
                       doctest::Contains("the dataset's size() is -3; it must be at least 0"), ConfigError);
}
