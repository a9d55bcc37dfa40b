// SPDX-License-Identifier: Apache-2.0
// Cost of an order: per index against a hash of eight bytes (xxh64), per resume, and in padding.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/keyed_permutation.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/length_bucketed_sampler.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/data/sampler/token_budget_sampler.hpp>

#include <data/samples.hpp>
#include <data/xxh64.hpp>
#include <suite.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

constexpr std::size_t at_once = 1024;  // indices, as many as a batch of tiny samples has

#if LOCKSTEP_BENCH_XXHASH
std::uint64_t in_line(std::uint64_t number) { return XXH64(&number, sizeof number, 7); }
/// As a program calls it that links the hash's library.
[[gnu::noinline]] std::uint64_t called(std::uint64_t number) { return in_line(number); }

/// Registers hashes of consecutive numbers.
template <std::uint64_t (*hash)(std::uint64_t)>
void add_hashes(std::string const& name) {
  add(name, [next = std::uint64_t{0}](benchmark::State& state) mutable {
    std::vector<std::uint64_t> out(at_once);
    for (auto _ : state) {
      for (auto& each : out) each = hash(next++);
      benchmark::DoNotOptimize(out.data());
      benchmark::ClobberMemory();
    }
    state.SetItemsProcessed(state.iterations() * std::int64_t{at_once});
  });
}
#endif

/// Indices, as the loader requests them, against hashes.
void add_indices() {
  for (Index const n : {Index{1'000'000}, Index{1'000'000'000}, (Index{1} << 20) + 1, (Index{1} << 40) + 1}) {
    auto const name = "order/index/samples:" + std::to_string(n);
    add(name, [n, next = Index{0}](benchmark::State& state) mutable {
      KeyedPermutation const order(n, 7);
      std::vector<Index> indices(at_once);
      for (auto _ : state) {
        if (next + static_cast<Index>(at_once) > n) next = 0;
        std::iota(indices.begin(), indices.end(), next);
        next += static_cast<Index>(at_once);
        order.replace(indices);
        benchmark::DoNotOptimize(indices.data());
        benchmark::ClobberMemory();
      }
      state.SetItemsProcessed(state.iterations() * std::int64_t{at_once});
    });
#if LOCKSTEP_BENCH_XXHASH
    add_hashes<called>(name + "/peer:xxh64_called");
    add_hashes<in_line>(name + "/peer:xxh64_in_line");
#else
    add(name + "/peer:xxh64", [](benchmark::State& state) {
      skip(state, "there was no xxhash.h when this was built (Debian: libxxhash-dev)");
    });
#endif
  }
}

/// Any number of samples, without memory.
struct Numbers {
  struct Sample {
    std::int32_t number = 0;
  };
  Index count;
  [[nodiscard]] Index size() const noexcept { return count; }
  [[nodiscard]] Sample get(Index i) const noexcept { return {static_cast<std::int32_t>(i)}; }
};

/// A resume, with its next batch.
class Resume {
 public:
  Resume(Index samples, Index step)
      : loader_(Numbers{samples}, data::ShuffledSampler{.seed = 1}, data::PadCollate{},
                {.batch_size = 32, .workers = 0}) {
    loader_.start({}, 0, step, 1);
    state_ = loader_.state_after(loader_.next());
  }
  void operator()() {
    loader_.resume({}, data::LoaderState::from_json(state_.to_json()), 1);
    static_cast<void>(loader_.next().batches()[0].rows());
  }

 private:
  data::DataLoader<Numbers, data::ShuffledSampler, data::PadCollate> loader_;
  data::LoaderState state_;
};

void add_resume() {
  std::string const name = "order/resume/samples:1000000000/step:1000000";
  add_pass(name, Shared([] { return Resume(1'000'000'000, 1'000'000); }), [](Resume& resume) { resume(); });
  add_pass(name + "/peer:1000_samples", Shared([] { return Resume(1000, 10); }), [](Resume& resume) { resume(); });
}

/// Lengths that are lognormal between 30 and 600.
std::vector<std::int32_t> lognormal_lengths(std::size_t count) {
  std::vector<std::int32_t> lengths;
  std::uint64_t drawn = 0;
  auto const uniform = [&] { return (static_cast<double>(mix(5, drawn++) >> 11) + 0.5) * 0x1p-53; };
  while (lengths.size() < count) {
    auto const normal = std::sqrt(-2 * std::log(uniform())) * std::cos(2 * 3.141592653589793 * uniform());
    auto const length = std::exp(std::log(134.0) + 0.6 * normal);  // the middle of 30 and 600, by their logarithms
    if (length >= 30 && length <= 600) lengths.push_back(static_cast<std::int32_t>(length));
  }
  return lengths;
}

/// Fraction of batches' slots (rows times the longest length) that is padding.
struct Waste {
  double slots = 0, tokens = 0;

  template <class LengthAt>
  void add(Index rows, LengthAt&& length_at) {
    std::int32_t longest = 0;
    for (Index row = 0; row < rows; ++row) {
      auto const length = length_at(row);
      longest = std::max(longest, length);
      tokens += length;
    }
    slots += static_cast<double>(longest) * static_cast<double>(rows);
  }
  [[nodiscard]] double percent() const { return 100 * (1 - tokens / slots); }
};

constexpr Index count = 65'536;

/// Registers a share of padding in percent, which is counted.
template <class Percent>
void add_padding(std::string const& name, Percent percent) {
  add(name,
      [=](benchmark::State& state) {
        for (auto _ : state) state.counters["padding"] = percent();
        counts_only(state);
      })
      ->Iterations(1)
      ->Repetitions(1);
}

/// Padding of batches of a fixed size in a sampler's order.
template <class Sampler>
double waste(Sampler const& sampler, std::vector<std::int32_t> const& lengths, Index batch) {
  data::InMemoryDataset const set{std::vector<Tiny>(count)};
  auto const order = sampler.over(set);
  auto at = order.in(0);
  Waste out;
  for (Index begin = 0; begin < count; begin += batch)
    out.add(batch, [&](Index row) { return lengths[static_cast<std::size_t>(at(begin + row))]; });
  return out.percent();
}

/// Padding of batches of at most as many tokens as 32 samples have on average.
double waste_by_tokens(std::vector<std::int32_t> const& lengths) {
  data::InMemoryDataset const set{std::vector<Tiny>(count)};
  auto const tokens = 32 * std::accumulate(lengths.begin(), lengths.end(), Index{0}) / count;
  data::TokenBudgetSampler const budget{.lengths = lengths, .tokens = tokens, .seed = 1};
  auto const order = budget.over(set);
  auto at = order.in(0);
  Waste out;
  for (Index batch = 0; batch < order.batches(); ++batch)
    out.add(order.rows(0, batch),
            [&](Index row) { return lengths[static_cast<std::size_t>(at(batch * order.max_rows() + row))]; });
  return out.percent();
}

/// Padding of ordered batches against batches in a random order.
void add_paddings() {
  Shared const lengths([] { return lognormal_lengths(count); });
  auto const at_random = [lengths](Index batch) {
    return [lengths, batch] { return waste(data::ShuffledSampler{.seed = 1}, *lengths, batch); };
  };
  for (auto const& [batch, window] : {std::pair{16, 1024}, {32, 1024}, {32, 4096}}) {
    auto const name = "order/padding" + parts({{"batch", batch}, {"window", window}});
    add_padding(name, [=, batch = batch, window = window] {
      return waste(data::LengthBucketedSampler{*lengths, batch, window, 1}, *lengths, batch);
    });
    add_padding(name + "/peer:random", at_random(batch));
  }
  add_padding("order/padding/token_budget", [lengths] { return waste_by_tokens(*lengths); });
  add_padding("order/padding/token_budget/peer:random", at_random(32));
}

}  // namespace

void register_benchmarks() {
  add_indices();
  add_resume();
  add_paddings();
}
