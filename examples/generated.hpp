// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <utility>

#include <lockstep/app/check_samples.hpp>
#include <lockstep/app/training.hpp>
#include <lockstep/lockstep.hpp>

/// Shared code of trainers that generate their samples: make(number) returns the sample of a number, equal on every
/// rank.
namespace generated {
using lockstep::Index;

/// Dataset of `count` samples, with numbers from `first`.
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
  if (!options.eval_data.empty())
    throw lockstep::ConfigError("--eval-data " + options.eval_data + ": this example generates its data");
  lockstep::app::check_samples(options, options.samples);
}

/// Trains `model` on one dataset and evaluates it on another.
template <class Options, class Known, class HeldOut, class Collate, class Model, class... Metrics>
int fit(lockstep::app::Training<Options> const& training, Known const& known, HeldOut const& held_out,
        Collate const& collate, Model model, Metrics... metrics) {
  namespace data = lockstep::data;
  auto const& options = training.options();
  data::DataLoader batches{known, data::ShuffledSampler{.seed = options.seed}, collate, training.loader_options()};
  data::DataLoader evaluation{held_out, data::SequentialSampler{}, collate, training.loader_options()};
  training.fit(std::move(model), lockstep::optim::AdamW{.weight_decay = options.weight_decay}, batches,
               lockstep::train::Evaluation{evaluation, std::move(metrics)...});
  return 0;
}

/// Trains `model` on the first --samples samples and evaluates it on the next samples, a tenth as many.
template <class Options, class Make, class Collate, class Model, class... Metrics>
int train(lockstep::app::Training<Options> const& training, Make const& make, Collate const& collate, Model model,
          Metrics... metrics) {
  auto const count = training.options().samples;
  return fit(training, Samples<Make>{make, 0, count}, Samples<Make>{make, count, (count + 9) / 10}, collate,
             std::move(model), std::move(metrics)...);
}

}  // namespace generated
