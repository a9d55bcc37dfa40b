// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/sampler/token_budget_sampler.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/core/philox.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>

using namespace lockstep;

namespace {

struct Sample {
  std::int32_t number = 0;
  std::vector<std::uint8_t> tokens;
};

/// Sample i has lengths[i] tokens.
struct Samples {
  std::vector<std::int32_t> const* lengths;
  Index size() const { return static_cast<Index>(lengths->size()); }
  Sample get(Index i) const {
    return {static_cast<std::int32_t>(i),
            std::vector<std::uint8_t>(static_cast<std::size_t>((*lengths)[static_cast<std::size_t>(i)]))};
  }
};
static_assert(data::BatchOrder<data::TokenBudgetSampler::Order>);
static_assert(!data::BatchOrder<data::SequentialSampler::Order>);

/// Lognormal, within [0, 600].
std::vector<std::int32_t> lengths(Index count) {
  std::vector<std::int32_t> out;
  for (Index i = 0; i < count; ++i) {
    auto const length = std::exp(5.0 + 0.6 * normal(Philox(1), static_cast<std::uint64_t>(i)));
    out.push_back(i % 50 == 7 ? 0 : static_cast<std::int32_t>(std::min(length, 600.0)));
  }
  return out;
}

using Loader = data::DataLoader<Samples, data::TokenBudgetSampler, data::PadCollate>;
Loader loader_of(std::vector<std::int32_t> const& all, data::DataLoaderOptions options, std::uint64_t seed = 3) {
  return {Samples{&all}, data::TokenBudgetSampler{.lengths = all, .tokens = 2000, .seed = seed}, data::PadCollate{},
          options};
}
std::vector<std::int32_t> numbers(data::Columns<Sample> const& batch) {
  auto const all = batch[&Sample::number].values.span();
  return {all.begin(), all.end()};
}
/// Returns the epoch's batches in the global order, from a place on.
std::vector<std::vector<std::int32_t>> epoch_of(Loader& loader, int ranks, data::LoaderState const* from = nullptr) {
  std::vector<std::vector<std::int32_t>> out;
  for (int rank = 0; rank < ranks; ++rank) {
    data::Split const split{rank, 1, ranks};
    from ? loader.resume(split, *from, 2) : loader.start(split, 1, 0, 2);
    for (Index step = 0;; ++step) {
      auto const held = [&] {
        try {
          return std::optional(loader.next());
        } catch (ConfigError const&) {  // no batch is left
          return std::optional<Loader::HeldBatches>();
        }
      }();
      if (!held) break;
      auto const place = static_cast<std::size_t>(step * ranks + rank);
      out.resize(std::max(out.size(), place + 1));
      out[place] = numbers(held->batches()[0]);
    }
  }
  return out;
}
std::vector<std::int32_t> sorted(std::vector<std::vector<std::int32_t>> const& batches) {
  std::vector<std::int32_t> out;
  for (auto const& batch : batches) out.insert(out.end(), batch.begin(), batch.end());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

TEST_CASE("each epoch has every sample once, in an equal number of batches within the budget") {
  for (Index count : {0, 1, 31, 32, 33, 257, 1000}) {
    auto const all = lengths(count);
    for (Index tokens : {600, 601, 5000}) {
      for (double spread : {0.0, 0.05, 1.0}) {
        auto const order =
            data::TokenBudgetSampler{.lengths = all, .tokens = tokens, .spread = spread, .min_batches = 2}.over(
                Samples{&all});
        REQUIRE(order.samples() == count);
        REQUIRE(order.size() == order.batches() * order.max_rows());
        for (Index epoch : {0, 1}) {
          std::vector<Index> seen;
          for (Index batch = 0; batch < order.batches(); ++batch) {
            Index longest = 0;
            auto const rows = order.rows(epoch, batch);
            REQUIRE((rows >= 1 && rows <= order.max_rows()));
            for (Index row = 0; row < order.max_rows(); ++row) {
              auto const sample = order.in(epoch)(batch * order.max_rows() + row);
              if (row >= rows) {  // another row of the same batch
                REQUIRE(std::find(seen.end() - rows, seen.end(), sample) != seen.end());
                continue;
              }
              seen.push_back(sample);
              longest = std::max<Index>(longest, all[static_cast<std::size_t>(sample)]);
            }
            REQUIRE(longest * rows <= tokens);
          }
          std::sort(seen.begin(), seen.end());
          REQUIRE(static_cast<Index>(seen.size()) == count);
          for (Index i = 0; i < count; ++i) REQUIRE(seen[static_cast<std::size_t>(i)] == i);
        }
      }
    }
  }
}

TEST_CASE("padding is small, batches are full, and samples are combined differently in every epoch") {
  auto const all = lengths(20'000);
  auto const order = data::TokenBudgetSampler{.lengths = all, .tokens = 4096, .seed = 1}.over(Samples{&all});
  double slots = 0, used = 0;
  Index full = 0, far = 0, before = 0, together = 0;
  auto in = order.in(0), next = order.in(1);
  std::vector<Index> batch_of(all.size());
  for (Index batch = 0; batch < order.batches(); ++batch)
    for (Index row = 0; row < order.rows(1, batch); ++row)
      batch_of[static_cast<std::size_t>(next(batch * order.max_rows() + row))] = batch;
  for (Index batch = 0; batch < order.batches(); ++batch) {
    Index longest = 0, sum = 0;
    auto const first = batch * order.max_rows(), rows = order.rows(0, batch);
    for (Index row = 0; row < rows; ++row) {
      auto const length = static_cast<Index>(all[static_cast<std::size_t>(in(first + row))]);
      longest = std::max(longest, length);
      sum += length;
      together += row > 0 &&
                  batch_of[static_cast<std::size_t>(in(first + row))] == batch_of[static_cast<std::size_t>(in(first))];
    }
    slots += static_cast<double>(longest * rows);
    used += static_cast<double>(sum);
    full += longest * rows >= 4096 * 9 / 10;
    far += std::abs(longest - before) > 40;
    before = longest;
  }
  MESSAGE("padding: ", 1 - used / slots);
  CHECK(1 - used / slots <= 0.03);
  CHECK(full >= order.batches() * 9 / 10);
  CHECK(far >= order.batches() / 2);
  CHECK(together <= 20'000 / 3);  // from a bucket of four batches or more, any sample may follow
}

TEST_CASE("the global sequence of batches is equal for any ranks, workers and tails, and each sample appears once") {
  auto const all = lengths(300);
  std::vector<std::int32_t> every(300);
  for (std::int32_t i = 0; i < 300; ++i) every[static_cast<std::size_t>(i)] = i;
  auto alone = loader_of(all, {.workers = 0});
  auto const batches = epoch_of(alone, 1);
  CHECK(sorted(batches) == every);
  CHECK(static_cast<Index>(batches.size()) == alone.steps());
  CHECK(alone.samples() == 300);
  for (int ranks : {2, 3, 7}) {
    for (auto tail : {data::Tail::exact, data::Tail::pad, data::Tail::drop}) {
      auto loader = loader_of(all, {.workers = ranks % 3, .tail = tail});
      auto const parts = epoch_of(loader, ranks);
      auto const steps = static_cast<std::size_t>(loader.steps({0, 1, ranks})), W = static_cast<std::size_t>(ranks);
      REQUIRE(parts.size() == steps * W);  // all ranks take an equal number of steps
      REQUIRE(steps == (tail == data::Tail::drop ? batches.size() / W : (batches.size() + W - 1) / W));
      for (std::size_t k = 0; k < parts.size(); ++k) {
        if (k < batches.size()) {
          CHECK(parts[k] == batches[k]);
        } else {
          CHECK(parts[k] == (tail == data::Tail::pad ? batches[k % batches.size()] : std::vector<std::int32_t>()));
        }
      }
    }
  }
  auto other = loader_of(all, {}, 4);
  CHECK(epoch_of(other, 1) != batches);
}

TEST_CASE("an epoch resumes after a batch, with another number of ranks") {
  auto const all = lengths(300);
  auto loader = loader_of(all, {.workers = 2});
  auto const batches = epoch_of(loader, 1);
  loader.start({0, 1, 2}, 1, 0, 2);
  static_cast<void>(loader.next());
  auto const state = loader.state_after(loader.next());
  CHECK(state.position == 4);  // batches
  for (int ranks : {1, 2, 3}) {
    auto rest = epoch_of(loader, ranks, &state);
    while (rest.back().empty()) rest.pop_back();
    CHECK(rest == std::vector(batches.begin() + 4, batches.end()));
  }
  auto others = loader_of(all, {}, 4);
  CHECK_THROWS_AS(others.resume({}, state, 2), DataError);
  loader.start({}, 1, static_cast<Index>(batches.size()) - 1, 3);
  CHECK(loader.state_after(loader.next()) == data::LoaderState{2, 0, 300, state.fingerprint});
}

TEST_CASE("options out of range are refused") {
  auto const refuses = [](data::TokenBudgetSampler const& sampler, char const* why) {
    std::vector<std::int32_t> const two{1, 2};
    CHECK_THROWS_WITH_AS(static_cast<void>(sampler.over(Samples{&two})), doctest::Contains(why), ConfigError);
  };
  refuses({.lengths = {1}}, "1 lengths for 2 samples");
  refuses({.lengths = {1, 2}, .tokens = 0}, "tokens is 0");
  refuses({.lengths = {1, 9}, .tokens = 8}, "sample 1 has length 9, and a batch has 8 tokens");
  refuses({.lengths = {-1, 2}, .tokens = 8}, "sample 0 has length -1");
  refuses({.lengths = {1, 2}, .tokens = 8, .spread = 1.5}, "spread is 1.5");
  refuses({.lengths = {1, 2}, .tokens = 8, .min_batches = 0}, "min_batches is 0");
  refuses({.lengths = {1, 2}, .tokens = 8, .max_rows = 0}, "max_rows is 0");
  std::vector<std::int32_t> const all{1, 2};
  CHECK_THROWS_WITH_AS(loader_of(all, {.batch_size = 32}), doctest::Contains("batch_size is 32; it must be left at 1"),
                       ConfigError);
}

TEST_CASE("rows, buckets and their order follow the options") {
  using Lengths = std::vector<std::int32_t>;
  auto const over = [](Lengths const& all, data::TokenBudgetSampler sampler) {
    sampler.lengths = all;
    return sampler.over(Samples{&all});
  };
  CHECK(over(Lengths(100, 1), {.lengths = {}, .tokens = 1000, .max_rows = 8}).batches() == 13);
  CHECK(over(Lengths(3, 1), {.lengths = {}, .tokens = 1000}).max_rows() == 3);
  CHECK(over(Lengths(4, 0), {.lengths = {}, .tokens = 4}).batches() == 1);  // costs as much as length 1
  // Half of the length is within the spread, so one bucket of two rows holds all.
  CHECK(over({10, 5, 5, 5}, {.lengths = {}, .tokens = 20, .spread = 0.5, .min_batches = 1}).max_rows() == 2);

  Lengths falling;
  for (std::int32_t i = 0; i < 16; ++i) falling.push_back(100 - i);
  auto const order = over(falling, {.lengths = {}, .tokens = 200, .spread = 0, .min_batches = 4});
  REQUIRE(order.max_rows() == 2);
  std::set<Index> partners;                // partners of the longest
  std::set<std::vector<bool>> of_buckets;  // batches with the longer half
  for (Index epoch = 0; epoch < 30; ++epoch) {
    std::vector<bool> longer;
    for (Index p = 0; p < order.size(); ++p) {
      if (order.in(epoch)(p) == 0) partners.insert(order.in(epoch)(p ^ 1));
      longer.push_back(order.in(epoch)(p) < 8);
    }
    of_buckets.insert(longer);
  }
  CHECK(partners.size() == 7);
  CHECK(of_buckets.size() > 10);
}

TEST_CASE("the substitute of a failing sample keeps its batch within the budget") {
  struct Failing : Samples {
    Sample get(Index i) const {
      if (i % 20 == 5) throw DataError("it is broken");
      return Samples::get(i);
    }
  };
  auto const all = lengths(3000);
  data::DataLoader loader{Failing{{&all}},
                          data::TokenBudgetSampler{.lengths = all, .tokens = 2000, .seed = 3},
                          data::PadCollate{},
                          {.workers = 0, .on_failure = data::OnFailure::substitute}};
  loader.start({}, 0, 0, 1);
  Index most = 0;
  for (Index step = 0; step < loader.steps({}); ++step) {
    auto const held = loader.next();
    most = std::max(most, held.batches()[0][&Sample::tokens].values.size());
  }
  CHECK(most <= 2000);
  CHECK(loader.stats().substituted >= 150);
}
