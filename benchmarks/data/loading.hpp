// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstdio>
#include <string>

#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>

#include <rate.hpp>

namespace lockstep_bench {

/// Samples per second through an endless loader; for a negative number, per second of processor time, including the
/// workers'.
template <class D, class C = lockstep::data::PadCollate>
class Loading {
 public:
  Loading(D const& dataset, lockstep::Index batch, int workers, C collate = {})
      : loader_(dataset, lockstep::data::ShuffledSampler{.seed = 1}, collate,
                {.batch_size = batch, .workers = workers, .prefetch = 2, .tail = lockstep::data::Tail::drop}) {
    loader_.start({}, 0, 0, lockstep::Index{1} << 40);
  }
  double operator()(double duration) {
    lockstep::Index seen = 0;
    auto const begin = seconds(Time::wall), used = seconds(Time::processor);
    double elapsed = 0;
    while (elapsed < std::abs(duration)) {
      seen += loader_.next().batches()[0].rows();
      elapsed = seconds(Time::wall) - begin;
    }
    return static_cast<double>(seen) / (duration > 0 ? elapsed : seconds(Time::processor) - used);
  }

 private:
  lockstep::data::DataLoader<D, lockstep::data::ShuffledSampler, C> loader_;
};

/// The fastest number of workers at present, at most two.
template <class D>
int best_workers(std::string const& name, D const& dataset, lockstep::Index batch,
                 lockstep::data::PadCollate const& collate = {}) {
  int best = 0;
  double most = 0;
  for (int workers : {0, 1, 2}) {
    Loading ours(dataset, batch, workers, collate);
    ours(0.3);
    auto const rate = ours(0.3);
    std::printf("  %s: ours with %d workers: %.0f samples/s\n", name.c_str(), workers, rate);
    if (rate > most) {
      most = rate;
      best = workers;
    }
  }
  return best;
}

}  // namespace lockstep_bench
