// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <utility>

#include <lockstep/app/check_samples.hpp>
#include <lockstep/app/training.hpp>
#include <lockstep/lockstep.hpp>

/// What trainers share that generate their samples: `make(number)` gives the sample of a number, the same on every
/// rank.
namespace generated {
using lockstep::Index;

/// Those of `count` numbers from `first`.
template <class Make>
struct Samples {
  Make make;
  Index first, count;

  [[nodiscard]] Index size() const { return count; }
  [[nodiscard]] auto get(Index i) const { return make(static_cast<std::uint64_t>(first + i)); }
};

template <class Options>
void check(Options const& options) {
  if (!options.data.empty())
    throw lockstep::ConfigError("--data " + options.data + ": this example generates its data");
  lockstep::app::check_samples(options, options.samples);
}

/// Trains `model` on the first --samples of them, and evaluates it on a tenth as many that come after.
template <class Options, class Make, class Collate, class Model, class... Metrics>
int train(lockstep::app::Training<Options> const& training, Make const& make, Collate const& collate, Model model,
          Metrics... metrics) {
  namespace data = lockstep::data;
  auto const& options = training.options();
  auto const loader = [&](Index first, Index count, auto sampler) {
    return data::DataLoader{Samples<Make>{make, first, count}, sampler, collate, training.loader_options()};
  };
  auto batches = loader(0, options.samples, data::ShuffledSampler{.seed = options.seed});
  auto evaluation = loader(options.samples, (options.samples + 9) / 10, data::SequentialSampler{});
  training.fit(std::move(model), lockstep::optim::AdamW{.weight_decay = options.weight_decay}, batches,
               lockstep::train::Evaluation{evaluation, std::move(metrics)...});
  return 0;
}

}  // namespace generated
