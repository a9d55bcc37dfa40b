// SPDX-License-Identifier: Apache-2.0
// Two ranks on two cores, against the prediction from a run on one of the cores and the time of an all-reduce alone. 1
// is exact, more is faster than predicted.
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
#include <lockstep/scaling/prediction.hpp>
#include <lockstep/scaling/saved_run.hpp>
#include <lockstep/train/logs/run_json.hpp>
#include <lockstep/train/trainer/trainer.hpp>

#include <kernel/zipf.hpp>
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
    {"width:32/padded", {.vocabulary = 2000, .width = 32, .layers = 1, .feed_forward = 64, .length = 32}, 600},
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

/// Samples per second of two ranks, and the time of their all-reduce.
std::pair<double, parallel::CollectiveCost> together(Case const& which) {
  std::pair<double, parallel::CollectiveCost> out;
  launch::Options options;
  options.threads = 2;
  int const code = launch::run(options, [&](launch::World& world) {
    auto communicator = comm::connect(world);
    auto const memory = communicator.allocate(parallel::CollectiveCost::large);
    std::span<float> const zeros(reinterpret_cast<float*>(memory.data()),
                                 parallel::CollectiveCost::large / sizeof(float));
    std::fill(zeros.begin(), zeros.end(), 0.0f);
    auto const cost = parallel::CollectiveCost::measure(communicator, zeros);
    auto const record = steps(parallel::DistributedDataParallel{std::move(communicator), 0, 1}, which);
    if (world.rank == 0) out = {record.samples_per_second(), cost};
    return 0;
  });
  if (code != 0) throw Error("prediction: the ranks ended with " + std::to_string(code));
  return out;
}

/// The samples per second that are predicted.
double predicted(Case const& which) {
  auto const record = steps(parallel::SingleDevice{.threads = 1}, which);
  auto const cost = together(which).second;
  auto const work = scaling::SavedRun(train::run_json(record, {}), "alone").workload();
  return scaling::predict(work, 2, cost, scaling::Scaling::weak, scaling::Overlap::none).samples_per_second;
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

void lockstep_bench::register_benchmarks() {
  for (auto const& which : cases) {
    auto const name = "prediction/ranks:2/" + which.name;
    auto const samples = 2 * which.steps * which.sizes.batch;
    add_rate(name, samples, [&which] { return together(which).first; });
    add_rate(name + "/peer:prediction", samples, [&which] { return predicted(which); });
  }
}
