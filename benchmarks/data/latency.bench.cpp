// SPDX-License-Identifier: Apache-2.0
// Waiting times for the first batch of an epoch and the first batch of a loader, and the slowdown of a training thread
// by the loader's worker. Wall-clock times are valid only on an idle machine.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <time.h>

#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/data/source/array_dataset.hpp>
#include <lockstep/data/source/open_raw.hpp>

#include <data/clips_file.hpp>
#include <data/samples.hpp>
#include <python_peer.hpp>
#include <rate.hpp>
#include <ratios.hpp>

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
double p99(std::vector<double> const& waits) { return part_of(waits, 0.99); }

void work_for(double duration) {
  for (auto const end = seconds(Time::wall) + duration; seconds(Time::wall) < end;) {
  }
}

/// Seconds of each `next` call: at the first step of an epoch, and at the others. The caller works for `step_seconds`
/// in between.
struct Waits {
  std::vector<double> border, within;

  Waits(Loader& loader, double duration, double step_seconds = 0) {
    auto const end = seconds(Time::wall) + duration;
    for (Index step = 0; seconds(Time::wall) < end || step % steps != 0; ++step) {
      auto const begin = seconds(Time::wall);
      static_cast<void>(loader.next().batches()[0].rows());
      (step % steps == 0 ? border : within).push_back(seconds(Time::wall) - begin);
      work_for(step_seconds);
    }
  }
};

/// Waiting time of a thread whose step takes as long as its one worker needs for two batches.
void beside_training(Ratios& ratios, TokensSet const& set) {
  auto loader = loader_of(set, 1);
  std::vector<double> to_batch;
  for (int run = 0; run < 9; ++run) {
    Waits const bare(loader, 0.2);
    auto const mean =
        std::accumulate(bare.within.begin(), bare.within.end(), 0.0) / static_cast<double>(bare.within.size());
    to_batch.push_back(mean / p99(Waits(loader, 0.8, 2 * mean).border));
  }
  ratios.report("epoch boundary, 99th percentile, 1 worker, during training", "a batch's mean time",
                Spread::of(to_batch), "9 runs");
}

void compare_waits(Ratios& ratios) {
  TokensSet const set{samples<Tokens>(batch * steps, [](Index) { return Tokens{}; })};
  auto loader = loader_of(set);
  // Both from the same runs: the machine causes the longest waits, and they affect both.
  std::vector<double> p50s, p99s, to_batch;
  for (int run = 0; run < 9; ++run) {
    Waits const waits(loader, 0.4);
    auto const all = std::accumulate(waits.within.begin(), waits.within.end(), 0.0);
    p50s.push_back(part_of(waits.within, 0.5) / part_of(waits.border, 0.5));
    p99s.push_back(p99(waits.within) / p99(waits.border));
    to_batch.push_back(all / static_cast<double>(waits.within.size()) / p99(waits.border));
  }
  std::string const label = "epoch boundary, ";
  ratios.report(label + "median, 2 workers", "median within an epoch", Spread::of(p50s), "9 runs");
  ratios.report(label + "99th percentile, 2 workers", "99th percentile within an epoch", Spread::of(p99s), "9 runs");
  ratios.report(label + "99th percentile, 2 workers", "a batch's mean time", Spread::of(to_batch), "9 runs");
  beside_training(ratios, set);
  if (auto peer = python_peer("loader_latency.py", {"border", "2"})) {
    ratios.compare("epoch boundary, 99th percentile, 2 workers", "pytorch",
                   [&](double duration) { return 1 / p99(Waits(loader, duration).border); }, std::ref(*peer),
                   {.seconds = 0.5, .count = 3});
  }
  if (auto peer = python_peer("loader_latency.py", {"first", "2"})) {
    auto const first = [&](double duration) {
      double waited = 0, count = 0;
      for (auto const end = seconds(Time::wall) + duration; seconds(Time::wall) < end; ++count) {
        auto const begin = seconds(Time::wall);
        auto fresh = loader_of(set);
        static_cast<void>(fresh.next().batches()[0].rows());
        waited += seconds(Time::wall) - begin;
      }
      return count / waited;
    };
    ratios.compare("first batch after construction, 2 workers", "pytorch", first, std::ref(*peer),
                   {.seconds = 0.5, .count = 3});
  }
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

/// Steps per second of a thread that takes a batch of clips before each step, against one that takes none: by
/// wall-clock time, and by that thread's processor time, which does not include other work on the machine.
void compare_training(Ratios& ratios) {
  ClipsFile const file(160);
  data::ArrayDataset const clips{
      data::ArrayMember{&Clip::pixels, data::open_raw<std::uint8_t>(file.path(), {17, 256, 256})}};
  data::DataLoader loader{clips, data::ShuffledSampler{.seed = 1}, data::PadCollate{}, {.batch_size = 8, .workers = 1}};
  loader.start({}, 0, 0, Index{1} << 40);
  Step step;
  double sum = 0;
  auto const beside = [&] {
    auto const held = loader.next();
    sum += step() + held.batches()[0][&Clip::pixels].values(0, 0);
  };
  auto const alone = [&] { sum += step(); };
  auto const by_thread = [](auto const& work) {
    return [&work](double duration) {
      auto const begin = thread_seconds();
      double made = 0;
      for (auto const end = seconds(Time::wall) + duration; seconds(Time::wall) < end; ++made) work();
      return made / (thread_seconds() - begin);
    };
  };
  std::string const label = "training during loading of clips, 8 per step";
  ratios.compare(label + ", processor time", "training alone", by_thread(beside), by_thread(alone),
                 {.seconds = 0.5, .count = 7});
  ratios.compare(
      label, "training alone", [&](double duration) { return rate(duration, Time::wall, beside); },
      [&](double duration) { return rate(duration, Time::wall, alone); }, {.seconds = 0.5, .count = 7});
  std::printf("  %s%s\n", loader.stats().verdict().c_str(), sum == 1 ? "." : "");
}

}  // namespace

int main() {
  Ratios ratios("data/latency");
  compare_waits(ratios);
  compare_training(ratios);
}
