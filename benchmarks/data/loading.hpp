// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include <lockstep/core/clock.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>

#include <suite.hpp>

namespace lockstep_bench {

/// An endless loader, as in training.
template <class Dataset, class Collate>
auto loader_of(Dataset const& dataset, lockstep::Index batch, Collate const& collate, int workers) {
  lockstep::data::DataLoader loader{
      dataset,
      lockstep::data::ShuffledSampler{.seed = 1},
      collate,
      {.batch_size = batch, .workers = workers, .prefetch = 2, .tail = lockstep::data::Tail::drop}};
  loader.start({}, 0, 0, lockstep::Index{1} << 40);
  return loader;
}

/// The fastest number of workers at present, at most two.
template <class Dataset, class Collate>
int fastest_workers(Dataset const& dataset, lockstep::Index batch, Collate const& collate) {
  int best = 0;
  double most = 0;
  for (int const workers : {0, 1, 2}) {
    auto loader = loader_of(dataset, batch, collate, workers);
    auto const batches_in = [&](double seconds) {
      double count = 0;
      for (auto const end = lockstep::Clock::seconds() + seconds; lockstep::Clock::seconds() < end; ++count)
        static_cast<void>(loader.next().batches()[0].rows());
      return count;
    };
    batches_in(0.2);
    auto const count = batches_in(0.3);
    if (count > most) {
      most = count;
      best = workers;
    }
  }
  return best;
}

/// Registers the samples per second through a loader, by wall-clock time, with its fastest number of workers or with
/// `workers`. The counter `processor_seconds` includes the workers' time.
template <class Dataset, class Collate = lockstep::data::PadCollate>
void add_loader(std::string const& name, Shared<Dataset> const& dataset, lockstep::Index batch,
                Collate const& collate = {}, int workers = -1) {
  Shared const chosen([=] { return workers >= 0 ? workers : fastest_workers(*dataset, batch, collate); });
  Shared const loader([=] { return loader_of(*dataset, batch, collate, *chosen); });
  add(name, [=](benchmark::State& state) {
    auto& batches = *loader;
    for (int i = 0; i < 2; ++i) static_cast<void>(batches.next().batches()[0].rows());
    std::int64_t samples = 0;
    auto const used = processor_seconds();
    for (auto _ : state) samples += batches.next().batches()[0].rows();
    state.counters["processor_seconds"] = per_iteration(processor_seconds() - used);
    state.SetItemsProcessed(samples);
    state.SetLabel(std::to_string(*chosen) + " workers");
  })->UseRealTime();
}

}  // namespace lockstep_bench
