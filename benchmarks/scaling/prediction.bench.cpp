// SPDX-License-Identifier: Apache-2.0
// Two and four ranks of one thread, against the prediction from a run on one of the cores, the time of an all-reduce
// alone and the machine's ceiling: what threads without communication give when several work at once. 1 is exact, more
// is faster than predicted.
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/scaling/machine_ceiling.hpp>
#include <lockstep/scaling/prediction.hpp>
#include <lockstep/scaling/saved_run.hpp>
#include <lockstep/train/logs/run_json.hpp>
#include <lockstep/train/trainer/trainer.hpp>

#include <kernel/zipf.hpp>
#include <sized.hpp>
#include <suite.hpp>
#include <train/classifier.hpp>

using namespace lockstep_bench;
using namespace lockstep;

namespace {

struct Case {
  std::string name;
  Sizes sizes;
  Index steps;
};
Case const cases[] = {
    {"width:128/padded", {}, 24},
    {"width:128/padded/batch:8", {.batch = 8}, 96},
    {"width:128/padded/batch:2", {.batch = 2}, 300},
    {"width:128/padded/layers:4", {.layers = 4}, 12},
    {"width:128/padded/length:32", {.length = 32}, 96},
    {"width:128/padded/vocabulary:2000", {.vocabulary = 2000}, 24},
    {"width:256/padded/batch:8", {.width = 256, .feed_forward = 1024, .batch = 8}, 24},
    {"width:64/padded/batch:8", {.width = 64, .feed_forward = 128, .batch = 8}, 200},
    {"width:32/padded", {.vocabulary = 2000, .width = 32, .layers = 1, .feed_forward = 64, .length = 32}, 600},
    {"width:32/padded/batch:4",
     {.vocabulary = 2000, .width = 32, .layers = 1, .feed_forward = 64, .length = 32, .batch = 4},
     sized(2000, 20)},
    {"width:128/ragged", {.rows = Rows::unequal}, 48},
};

/// Steps of a policy's ranks, after a few warm-up steps.
template <class Policy>
train::RunRecord steps(Policy policy, Case const& which) {
  auto const& sizes = which.sizes;
  auto const rows = 32 * sizes.batch;
  auto const ids = zipf_ids(sizes.vocabulary, rows * sizes.length);
  std::vector<Text> texts;
  for (Index row = 0; row < rows; ++row) {
    auto const begin = ids.begin() + row * sizes.length;
    texts.push_back({{begin, begin + sizes.length_of(row)}, static_cast<int>(row % sizes.classes)});
  }
  auto const fit = [&](auto collate) {
    data::DataLoader loader{data::InMemoryDataset{std::move(texts)},
                            data::SequentialSampler{},
                            collate,
                            {.batch_size = sizes.batch, .workers = 0}};
    Trainer trainer{Classifier(sizes), optim::AdamW{}, std::move(policy)};
    trainer.fit(loader, {.epochs = 1, .max_steps = 3});
    return trainer.fit(loader, {.epochs = which.steps, .max_steps = which.steps});
  };
  return sizes.rows == Rows::full ? fit(data::PadCollate{}) : fit(data::RaggedCollate{});
}

/// Calls `body` on each of the ranks, with its communicator.
template <class Body>
void on_ranks(int ranks, Body const& body) {
  launch::Options options;
  options.threads = ranks;
  int const code = launch::run(options, [&](launch::World& world) {
    auto communicator = comm::connect(world);
    body(world.rank, std::move(communicator));
    return 0;
  });
  if (code != 0) throw Error("prediction: the ranks ended with " + std::to_string(code));
}

/// Samples per second of the ranks together.
double measured(Case const& which, int ranks) {
  double rate = 0;
  on_ranks(ranks, [&](int rank, auto communicator) {
    auto const record = steps(parallel::DistributedDataParallel{std::move(communicator), 0, 1}, which);
    if (rank == 0) rate = record.samples_per_second();
  });
  return rate;
}

/// Time of an all-reduce of the ranks.
parallel::CollectiveCost cost_of(int ranks) {
  parallel::CollectiveCost out;
  on_ranks(ranks, [&](int rank, auto communicator) {
    auto const memory = communicator.allocate(parallel::CollectiveCost::large);
    std::span<float> const zeros(reinterpret_cast<float*>(memory.data()),
                                 parallel::CollectiveCost::large / sizeof(float));
    std::fill(zeros.begin(), zeros.end(), 0.0f);
    auto const cost = parallel::CollectiveCost::measure(communicator, zeros);
    if (rank == 0) out = cost;
  });
  return out;
}

/// Returns this machine's ceiling, measured by the first call.
scaling::MachineCeiling const& ceiling() {
  static auto const measured = [] {
    auto out = scaling::MachineCeiling::measure();
    for (auto const& point : out.points)
      std::fprintf(stderr, "ceiling: %lld threads: matrix products %.2f, memory %.2f of the processor time alone%s\n",
                   static_cast<long long>(point.threads), point.arithmetic, point.memory,
                   out.busy ? "; rough: other programs used the processors" : "");
    return out;
  }();
  return measured;
}

/// The samples per second that are predicted.
double predicted(Case const& which, int ranks) {
  auto const& shared = ceiling();
  auto const record = steps(parallel::SingleDevice{.threads = 1}, which);
  auto const work = scaling::SavedRun(train::run_json(record, {}), "alone").workload();
  return predict(work, ranks, cost_of(ranks), shared).samples_per_second;
}

/// Registers a rate in samples per second.
template <class SamplesPerSecond>
void add_rate(std::string const& name, Index samples, SamplesPerSecond rate) {
  add(name,
      [=](benchmark::State& state) {
        if (processor_numbers().size() < 2) return skip(state, "2 ranks need 2 processors, and this process may use 1");
        for (auto _ : state) state.SetIterationTime(static_cast<double>(samples) / rate());
        state.SetItemsProcessed(state.iterations() * samples);
      })
      ->UseManualTime()
      ->Iterations(1)
      ->Unit(benchmark::kMillisecond);
}

}  // namespace

void register_benchmarks() {
  for (int const ranks : {2, 4})
    for (auto const& which : cases) {
      auto const name = "prediction/ranks:" + std::to_string(ranks) + "/" + which.name;
      auto const samples = ranks * which.steps * which.sizes.batch;
      add_rate(name, samples, [&which, ranks] { return measured(which, ranks); });
      add_rate(name + "/peer:prediction", samples, [&which, ranks] { return predicted(which, ranks); });
    }
}
