// SPDX-License-Identifier: Apache-2.0
// Waiting times for the first batch of an epoch and the first batch of a loader, and the slowdown of a training thread
// by the loader's worker. Wall-clock times are valid only on an idle machine.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <time.h>

#include <lockstep/core/clock.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/data/source/array_dataset.hpp>
#include <lockstep/data/source/open_raw.hpp>

#include <data/clips_file.hpp>
#include <data/samples.hpp>
#include <python_peer.hpp>
#include <suite.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

constexpr Index batch = 256, steps = 16;  // an epoch of the 4,096 samples of peers/loader_latency.py

using TokensSet = data::InMemoryDataset<Tokens>;
using Loader = data::DataLoader<TokensSet, data::ShuffledSampler, data::PadCollate>;

Loader loader_of(TokensSet const& set, int workers = 2) {
  Loader loader(set, data::ShuffledSampler{.seed = 1}, data::PadCollate{}, {.batch_size = batch, .workers = workers});
  loader.start({}, 0, 0, Index{1} << 40);
  return loader;
}

double part_of(std::vector<double> waits, double part) {
  std::sort(waits.begin(), waits.end());
  return waits[static_cast<std::size_t>(part * static_cast<double>(waits.size()))];
}
double p50(std::vector<double> const& waits) { return part_of(waits, 0.5); }
double p99(std::vector<double> const& waits) { return part_of(waits, 0.99); }
double mean(std::vector<double> const& waits) {
  return std::accumulate(waits.begin(), waits.end(), 0.0) / static_cast<double>(waits.size());
}

void work_for(double duration) {
  for (auto const end = Clock::seconds() + duration; Clock::seconds() < end;) {
  }
}

/// Seconds of each `next` call: at the first step of an epoch, and at the others. The caller works for `step_seconds`
/// in between.
struct Waits {
  std::vector<double> border, within;

  Waits(Loader& loader, Index epochs, double step_seconds = 0) {
    for (Index step = 0; step < epochs * steps; ++step) {
      auto const begin = Clock::seconds();
      static_cast<void>(loader.next().batches()[0].rows());
      (step % steps == 0 ? border : within).push_back(Clock::seconds() - begin);
      work_for(step_seconds);
    }
  }
};

/// Registers a statistic of waits as the time of an iteration; an iteration is an epoch.
template <class Statistic>
void add_waits(std::string const& name, Shared<Loader> const& loader, Statistic statistic) {
  add(name,
      [=](benchmark::State& state) {
        while (state.KeepRunningBatch(state.max_iterations))
          state.SetIterationTime(static_cast<double>(state.max_iterations) * statistic(*loader, state.max_iterations));
      })
      ->UseManualTime()
      ->Iterations(400)
      ->Unit(benchmark::kMicrosecond);
}

/// Waiting times at the border of two epochs, against those within an epoch and the mean time of a batch.
void add_epoch_boundary() {
  Shared const set([] { return TokensSet{samples<Tokens>(batch * steps, [](Index) { return Tokens{}; })}; });
  Shared const loader([set] { return loader_of(*set); });
  std::string const median = "latency/epoch_boundary/p50/workers:2", rare = "latency/epoch_boundary/p99/workers:2";
  add_waits(median, loader, [](Loader& l, Index epochs) { return p50(Waits(l, epochs).border); });
  add_waits(median + "/peer:within_an_epoch", loader,
            [](Loader& l, Index epochs) { return p50(Waits(l, epochs).within); });
  add_waits(rare, loader, [](Loader& l, Index epochs) { return p99(Waits(l, epochs).border); });
  add_waits(rare + "/peer:within_an_epoch", loader,
            [](Loader& l, Index epochs) { return p99(Waits(l, epochs).within); });
  add_waits(rare + "/peer:mean_of_a_batch", loader,
            [](Loader& l, Index epochs) { return mean(Waits(l, epochs).within); });
  add_peer(rare, "pytorch", python_peer("loader_latency.py", {"border", "2"}))
      ->Iterations(3)
      ->Unit(benchmark::kMicrosecond);
  // The caller's step takes as long as its one worker needs for two batches.
  Shared const beside([set] { return loader_of(*set, 1); });
  std::string const training = "latency/epoch_boundary/p99/workers:1/during_training";
  add_waits(training, beside, [](Loader& l, Index epochs) {
    auto const each = mean(Waits(l, epochs).within);
    return p99(Waits(l, epochs, 2 * each).border);
  });
  add_waits(training + "/peer:mean_of_a_batch", beside,
            [](Loader& l, Index epochs) { return mean(Waits(l, epochs).within); });

  std::string const first = "latency/first_batch/workers:2";
  add(first, [set](benchmark::State& state) {
    for (auto _ : state) {
      auto const begin = Clock::seconds();
      auto fresh = loader_of(*set);
      static_cast<void>(fresh.next().batches()[0].rows());
      state.SetIterationTime(Clock::seconds() - begin);  // without the end of its workers
    }
  })->UseManualTime();
  add_peer(first, "pytorch", python_peer("loader_latency.py", {"first", "2"}));
}

/// About twenty milliseconds of arithmetic on data in the second-level cache.
class Step {
 public:
  [[gnu::noinline]] double operator()() {
    for (int pass = 0; pass < 400; ++pass) {
      for (auto& value : values_) value = value * 0.999f + 0.001f;
    }
    return static_cast<double>(values_[0]);
  }

 private:
  std::vector<float> values_ = std::vector<float>(128 << 10, 2.0f);
};

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Steps of a thread that takes a batch of clips before each step, against one that takes none. The counter
/// `processor_seconds` is that thread's, and does not include other work on the machine.
void add_training() {
  Shared const file([] { return ClipsFile(160); });
  Shared const loader([file] {
    data::ArrayDataset const clips{
        data::ArrayMember{&Clip::pixels, data::open_raw<std::uint8_t>(file->path(), {17, 256, 256})}};
    data::DataLoader made{clips, data::ShuffledSampler{.seed = 1}, data::PadCollate{}, {.batch_size = 8, .workers = 1}};
    made.start({}, 0, 0, Index{1} << 40);
    return made;
  });
  auto const add_steps = [](std::string const& name, auto work) {
    add(name,
        [=](benchmark::State& state) {
          Step step;
          auto const used = thread_seconds();
          for (auto _ : state) benchmark::DoNotOptimize(work(step));
          state.counters["processor_seconds"] = per_iteration(thread_seconds() - used);
          state.SetItemsProcessed(state.iterations());
        })
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  };
  add_steps("latency/training/loading_clips:8", [loader](Step& step) {
    auto const held = loader->next();
    return step() + held.batches()[0][&Clip::pixels].values(0, 0);
  });
  add_steps("latency/training/loading_clips:8/peer:alone", [](Step& step) { return step(); });
}

}  // namespace

void register_benchmarks() {
  add_epoch_boundary();
  add_training();
}
