// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/app/options.hpp>
#include <lockstep/comm/connect.hpp>
#include <lockstep/data/data_loader.hpp>
#include <lockstep/launch/world.hpp>
#include <lockstep/parallel/data_parallel.hpp>
#include <lockstep/parallel/distributed_data_parallel.hpp>
#include <lockstep/parallel/single_device.hpp>
#include <lockstep/train/trainer.hpp>

namespace lockstep::inline LOCKSTEP_ABI::app {

/// What `app::run` hands to a rank's train function: the flags, the rank's place in the world, and the one place where
/// a flag chooses the parallel policy's type.
template <class Options>
class Training {
 public:
  Training(Options const& options, launch::World& world) : options_(options), world_(world) {}

  [[nodiscard]] Options const& options() const noexcept { return options_; }
  [[nodiscard]] launch::World& world() const noexcept { return world_; }
  /// One rank speaks for all.
  [[nodiscard]] bool speaks() const noexcept { return world_.rank == 0; }
  [[nodiscard]] data::DataLoaderOptions loader_options() const noexcept {
    return {.batch_size = options_.batch_size, .workers = options_.num_workers, .prefetch = options_.prefetch};
  }

  /// f(policy) with the policy that --parallel names.
  template <class F>
  decltype(auto) with_policy(F&& f) const {
    switch (options_.parallel) {
      case Parallel::dp:
        return f(parallel::DataParallel{.devices = options_.devices, .threads = options_.threads});
      case Parallel::ddp:
        return f(parallel::DistributedDataParallel{comm::connect(world_), bucket_bytes(), options_.threads});
      case Parallel::single:
        break;
    }
    return f(parallel::SingleDevice{.threads = options_.threads});
  }

  /// What the flags say about how long and how: epochs, accumulation, clipping, warm-up and cosine decay.
  template <class Loader>
  [[nodiscard]] FitOptions fit_options(Loader const& loader) const {
    auto const shards = static_cast<int>(options_.shards());
    Index const micro_steps = loader.steps({.first = 0, .count = shards, .all = shards});
    Index const epoch_steps = (micro_steps + options_.grad_accum_steps - 1) / options_.grad_accum_steps;
    Index const all = epoch_steps * options_.epochs;
    auto const warmup = static_cast<Index>(std::llround(options_.warmup_epochs * static_cast<double>(epoch_steps)));
    Index const steps = std::min(all, options_.max_steps.value_or(all));
    return {.epochs = options_.epochs,
            .max_steps = options_.max_steps.value_or(0),
            .accumulation = options_.grad_accum_steps,
            .clip_norm = options_.clip_norm.value_or(0),
            .schedule = {
                .warmup_steps = std::min(warmup, steps), .total_steps = steps, .kind = optim::Schedule::Kind::cosine}};
  }

 private:
  [[nodiscard]] std::size_t bucket_bytes() const noexcept {
    return static_cast<std::size_t>(options_.bucket_cap_mb * (1 << 20));
  }

  Options const& options_;
  launch::World& world_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::app
