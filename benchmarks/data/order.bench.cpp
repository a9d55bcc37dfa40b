// SPDX-License-Identifier: Apache-2.0
// Cost of an order: per index against a hash of eight bytes (xxh64), per resume, and in padding.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <sys/resource.h>

#include <lockstep/core/keyed_permutation.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/length_bucketed_sampler.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/data/sampler/token_budget_sampler.hpp>

#include <data/samples.hpp>
#include <rate.hpp>
#include <ratios.hpp>

#if __has_include(<xxhash.h>)
#define XXH_INLINE_ALL
#include <xxhash.h>
#define LOCKSTEP_BENCH_XXHASH 1
#else
#define LOCKSTEP_BENCH_XXHASH 0
#endif

using namespace lockstep;
using namespace lockstep_bench;

namespace {

constexpr std::size_t at_once = 1024;  // indices, as many as a batch of tiny samples has

#if LOCKSTEP_BENCH_XXHASH
std::uint64_t in_line(std::uint64_t number) { return XXH64(&number, sizeof number, 7); }
/// As a program calls it that links the hash's library.
[[gnu::noinline]] std::uint64_t called(std::uint64_t number) { return in_line(number); }

/// Hashes of consecutive numbers per second.
template <std::uint64_t (*hash)(std::uint64_t)>
double hashes(double duration) {
  std::vector<std::uint64_t> out(at_once);
  std::uint64_t next = 0;
  return at_once * rate(duration, Time::processor, [&] {
           for (auto& each : out) each = hash(next++);
         });
}
#endif

/// Indices per second, as the loader requests them, against hashes per second.
void compare_with_hash(Ratios& ratios) {
#if LOCKSTEP_BENCH_XXHASH
  std::vector<Index> indices(at_once);
  for (auto const& [name, size] : {std::pair{"10^6", Index{1'000'000}},
                                   {"10^9", Index{1'000'000'000}},
                                   {"2^20 + 1", (Index{1} << 20) + 1},
                                   {"2^40 + 1", (Index{1} << 40) + 1}}) {
    auto const n = size;
    KeyedPermutation const order(n, 7);
    Index next = 0;
    auto const ours = [&](double duration) {
      return at_once * rate(duration, Time::processor, [&] {
               if (next + static_cast<Index>(at_once) > n) next = 0;
               std::iota(indices.begin(), indices.end(), next);
               next += static_cast<Index>(at_once);
               order.replace(indices);
             });
    };
    auto const label = std::string("index of a shuffled order of ") + name;
    ratios.compare(label, "xxh64, called", ours, hashes<called>, {.seconds = 0.1, .count = 5});
    ratios.compare(label, "xxh64, in line", ours, hashes<in_line>, {.seconds = 0.1, .count = 5});
  }
#else
  static_cast<void>(ratios);
  std::puts("skipped: order against xxh64: there is no xxhash.h (Debian: libxxhash-dev)");
#endif
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

double resident_megabytes() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_maxrss) / 1024;
}

/// Resumes per second, each with its next batch.
void compare_resume(Ratios& ratios) {
  constexpr Index batch = 32;
  struct Resume {
    data::DataLoader<Numbers, data::ShuffledSampler, data::PadCollate> loader;
    data::LoaderState state;

    Resume(Index samples, Index step)
        : loader(Numbers{samples}, data::ShuffledSampler{.seed = 1}, data::PadCollate{},
                 {.batch_size = batch, .workers = 0}) {
      loader.start({}, 0, step, 1);
      state = loader.state_after(loader.next());
    }
    double operator()(double duration) {
      return rate(duration, Time::processor, [&] {
        loader.resume({}, data::LoaderState::from_json(state.to_json()), 1);
        static_cast<void>(loader.next().batches()[0].rows());
      });
    }
  };
  Resume small(1000, 10);
  auto const before = resident_megabytes();
  Resume large(1'000'000'000, 1'000'000);
  ratios.compare("resume at step 10^6 of 10^9 samples", "10^3 samples", std::ref(large), std::ref(small),
                 {.seconds = 0.2, .count = 5});
  std::printf("  its state: %zu bytes; memory grown by %.1f MB meanwhile\n", large.state.to_json().size(),
              resident_megabytes() - before);
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

/// Fraction of a batch's slots that is padding: batches of a fixed size, and of a fixed number of tokens.
void report_padding(Ratios& ratios) {
  constexpr Index count = 65'536;
  auto const lengths = lognormal_lengths(count);
  std::vector<Tiny> const samples(count);
  data::InMemoryDataset const set{samples};
  auto const length_of = [&](Index sample) { return lengths[static_cast<std::size_t>(sample)]; };
  auto const waste = [&](auto const& sampler, Index batch) {
    auto const order = sampler.over(set);
    auto at = order.in(0);
    Waste out;
    for (Index begin = 0; begin < count; begin += batch) {
      out.add(batch, [&](Index row) { return length_of(at(begin + row)); });
    }
    return out.percent();
  };
  auto const report = [&](std::string const& label, double ours, double random) {
    char how[64];
    std::snprintf(how, sizeof how, "counted: %.1f %%, and %.1f %% at random", ours, random);
    ratios.report(label, "random", {random / ours, random / ours, random / ours}, how);
  };
  for (auto const& [batch, window] : {std::pair{16, 1024}, {32, 1024}, {32, 4096}}) {
    report("padding of batches of " + std::to_string(batch) + ", by length in windows of " + std::to_string(window),
           waste(data::LengthBucketedSampler{lengths, batch, window, 1}, batch),
           waste(data::ShuffledSampler{.seed = 1}, batch));
  }
  auto const tokens = 32 * std::accumulate(lengths.begin(), lengths.end(), Index{0}) / count;
  data::TokenBudgetSampler const budget{.lengths = lengths, .tokens = tokens, .seed = 1};
  auto const order = budget.over(set);
  auto at = order.in(0);
  Waste out;
  for (Index batch = 0; batch < order.batches(); ++batch) {
    out.add(order.rows(0, batch), [&](Index row) { return length_of(at(batch * order.max_rows() + row)); });
  }
  report("padding of batches of at most " + std::to_string(tokens) + " tokens, by their number", out.percent(),
         waste(data::ShuffledSampler{.seed = 1}, 32));
  std::printf("  %.1f rows a batch, %.1f %% of its tokens used; the longest sample has %d\n",
              static_cast<double>(count) / static_cast<double>(order.batches()),
              100 * out.tokens / static_cast<double>(order.batches() * tokens),
              *std::max_element(lengths.begin(), lengths.end()));
}

}  // namespace

int main() {
  Ratios ratios("data/order");
  compare_with_hash(ratios);
  compare_resume(ratios);
  report_padding(ratios);
}
