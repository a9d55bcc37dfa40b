// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/loader/loader_state.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>

using namespace lockstep;

namespace {

struct Number {
  Index value = 0;
};
struct Numbers {
  Index count;
  Index size() const { return count; }
  Number get(Index i) const { return {i}; }
};
auto make(Index count, Index batch_size, int workers = 0, std::uint64_t seed = 1) {
  return data::DataLoader{Numbers{count},
                          data::ShuffledSampler{.seed = seed},
                          data::PadCollate{},
                          {.batch_size = batch_size, .workers = workers}};
}
using Place = std::pair<Index, Index>;  // epoch and position
/// Returns the rows of the next `steps` micro-steps of all shards, and the state after them.
template <class Loader>
data::LoaderState take(Loader& loader, Index steps, std::vector<std::pair<Place, Index>>& seen) {
  data::LoaderState state;
  for (Index i = 0; i < steps; ++i) {
    auto const held = loader.next();
    for (auto const& batch : held.batches())
      for (Index r = 0; r < batch.rows(); ++r)
        seen.push_back({{batch.epoch(), batch.positions()(r)}, batch[&Number::value].values(r)});
    state = loader.state_after(held);
  }
  return state;
}

}  // namespace

TEST_CASE("a state survives a JSON round trip and is small") {
  data::LoaderState const state{3, 1'000'000, 1'000'000'000, "0123456789abcdef"};
  auto const text = state.to_json();
  CHECK(text == R"({"version":1,"epoch":3,"position":1000000,"samples":1000000000,"fingerprint":"0123456789abcdef"})");
  CHECK(text.size() <= 256);
  CHECK(data::LoaderState::from_json(text) == state);
}

TEST_CASE("invalid states are refused") {
  auto const read = [](char const* text) { return data::LoaderState::from_json(text).epoch; };
  CHECK_THROWS_AS(read("{"), DataError);
  CHECK_THROWS_AS(read("{}"), DataError);
  CHECK_THROWS_WITH_AS(read(R"({"version":2,"epoch":0,"position":0,"samples":1,"fingerprint":""})"),
                       doctest::Contains("version 2; this library reads version 1"), DataError);
  CHECK_THROWS_WITH_AS(read(R"({"version":1,"epoch":0,"position":7,"samples":5,"fingerprint":""})"),
                       doctest::Contains("position 7 of 5"), DataError);
  CHECK_THROWS_AS(read(R"({"version":1,"epoch":0,"position":6,"samples":5,"fingerprint":""})"), DataError);
  CHECK(read(R"({"version":1,"epoch":2,"position":5,"samples":5,"fingerprint":""})") == 2);  // an epoch's end
  CHECK_THROWS_AS(read(R"({"version":1,"epoch":0,"position":-1,"samples":5,"fingerprint":""})"), DataError);
  CHECK_THROWS_AS(read(R"({"version":1,"epoch":-1,"position":0,"samples":5,"fingerprint":""})"), DataError);
  CHECK_THROWS_AS(read(R"({"version":1,"epoch":"0","position":0,"samples":5,"fingerprint":""})"), DataError);
}

TEST_CASE("after a resume anywhere, with any ranks, batch size and workers, every sample still appears once") {
  constexpr Index count = 47, epochs = 3;
  std::vector<std::pair<Place, Index>> all;
  auto whole = make(count, 1);
  whole.start({}, 0, 0, epochs);
  static_cast<void>(take(whole, count * epochs, all));
  for (int ranks : {1, 2, 3}) {
    for (Index steps : {1, 4, 5, 8, 9, 16}) {
      for (int other : {1, 2, 5}) {
        std::vector<std::pair<Place, Index>> seen;
        auto before = make(count, 6, ranks % 2);
        before.start({0, ranks, ranks}, 0, 0, epochs);
        if (steps > epochs * before.steps({0, ranks, ranks})) continue;
        auto const state = take(before, steps, seen);
        auto after = make(count, 4, 2);
        data::Split const split{0, other, other};
        after.resume(split, data::LoaderState::from_json(state.to_json()), epochs);
        auto const rest = (count - state.position + 4 * other - 1) / (4 * other);
        auto const left = epochs > state.epoch ? rest + (epochs - state.epoch - 1) * after.steps(split) : 0;
        static_cast<void>(take(after, left, seen));
        CHECK_THROWS_AS(static_cast<void>(after.next()), ConfigError);
        std::sort(seen.begin(), seen.end());
        REQUIRE(seen == all);
      }
    }
  }
}

TEST_CASE("the state before the step after an epoch's last is the next epoch's first, and can be read again") {
  for (auto tail : {data::Tail::exact, data::Tail::pad, data::Tail::drop}) {
    data::DataLoader loader{
        Numbers{23}, data::ShuffledSampler{}, data::PadCollate{}, {.batch_size = 4, .workers = 0, .tail = tail}};
    auto const steps = loader.steps();
    auto const state = loader.state_before({}, 2, steps);
    CHECK(state == loader.state_before({}, 3, 0));
    CHECK(data::LoaderState::from_json(state.to_json()) == state);
    loader.start({}, 2, steps - 1, 3);
    CHECK(loader.state_after(loader.next()) == state);
    for (Index step : {Index{-1}, steps + 1})
      CHECK_THROWS_WITH_AS(static_cast<void>(loader.state_before({}, 2, step)),
                           doctest::Contains("within the epoch's micro-steps"), ConfigError);
  }
}

TEST_CASE("the next epoch's first position follows an epoch's last step") {
  auto loader = make(8, 4);
  loader.start({}, 0, 0, 2);
  std::vector<std::pair<Place, Index>> seen;
  auto const state = take(loader, 2, seen);
  CHECK(state.epoch == 1);
  CHECK(state.position == 0);
}

TEST_CASE("resuming far into large data takes constant time and memory") {
  auto loader = make(1'000'000'000, 4);
  loader.start({}, 0, 1'000'000, 1);
  std::vector<std::pair<Place, Index>> seen;
  auto const state = take(loader, 1, seen);
  CHECK(state.position == 4'000'004);
  CHECK(state.to_json().size() <= 256);
  auto again = make(1'000'000'000, 8);
  again.resume({}, state, 1);
  auto const held = again.next();
  CHECK(held.batches()[0].positions()(0) == 4'000'004);
}

TEST_CASE("other data or another order are refused with both fingerprints") {
  auto loader = make(100, 4);
  loader.start({}, 0, 0, 1);
  std::vector<std::pair<Place, Index>> seen;
  auto const state = take(loader, 3, seen);
  auto longer = make(101, 4), shuffled_otherwise = make(100, 4, 0, 2);
  CHECK_THROWS_WITH_AS(longer.resume({}, state, 1), doctest::Contains("the state is of 100 samples"), DataError);
  CHECK_THROWS_WITH_AS(shuffled_otherwise.resume({}, state, 1), doctest::Contains(state.fingerprint.c_str()),
                       DataError);
  CHECK_THROWS_WITH_AS(loader.resume({0, 1, 0}, state, 1), doctest::Contains("split.all is 0"), ConfigError);
}

TEST_CASE("changed samples in memory are refused, and are checked once") {
  auto const over = [](std::vector<Number> const& numbers) {
    return data::DataLoader{
        data::InMemoryDataset{numbers}, data::ShuffledSampler{}, data::PadCollate{}, {.workers = 0}};
  };
  auto before = over({{1}, {2}, {3}}), same = over({{1}, {2}, {3}}), changed = over({{1}, {2}, {4}});
  before.start({}, 0, 0, 1);
  auto const state = before.state_after(before.next());
  same.resume({}, state, 1);
  CHECK(same.next().batches()[0].positions()(0) == 1);
  CHECK_THROWS_WITH_AS(changed.resume({}, state, 1), doctest::Contains(state.fingerprint.c_str()), DataError);

  struct Costly : Numbers {
    int* asked;
    std::uint64_t fingerprint() const { return static_cast<std::uint64_t>(++*asked); }
  };
  int asked = 0;
  data::DataLoader loader{Costly{{8}, &asked}, data::ShuffledSampler{}, data::PadCollate{}, {.workers = 0}};
  loader.start({}, 0, 0, 1);
  auto last = loader.state_after(loader.next());
  for (int i = 0; i < 3; ++i) last = loader.state_after(loader.next());
  auto moved = std::move(loader);
  moved.resume({}, last, 1);
  CHECK(asked == 1);
}
