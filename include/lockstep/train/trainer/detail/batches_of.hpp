// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/data/split.hpp>
#include <lockstep/optim/optimizer.hpp>
#include <lockstep/train/trainer/detail/loads_batches.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Batches of an argument that holds none. The trainer checks no model with them.
struct NoBatches {
  using value_type = void;
};

/// Returns the batches of one step: a loader's, a range's (also of data::Collated), or a single batch.
template <class Batches>
[[nodiscard]] auto batches_of(Batches const& batches) {
  if constexpr (requires { batches.batches(); }) {
    return std::span(batches.batches());
  } else if constexpr (requires { batches.rows(); }) {
    return std::span<Batches const>(&batches, 1);
  } else if constexpr (requires { batches.batch().rows(); }) {
    return std::span(&batches.batch(), 1);
  } else if constexpr (requires { std::span(batches)[0].batch().rows(); }) {
    std::vector<std::remove_cvref_t<decltype(std::span(batches)[0].batch())>> all;
    for (auto const& held : batches) all.push_back(held.batch());
    return all;
  } else if constexpr (requires { std::span(batches)[0].rows(); }) {
    return std::span(batches);
  } else {
    static_assert(!std::is_same_v<Batches, Batches>,
                  "Lockstep: step takes a batch for each device: what a data::DataLoader's next() returns, a "
                  "data::Collated{data::PadCollate{}, samples}, a batch, or a std::vector of either; see "
                  "docs/how-to/write-your-own-loop.md");
    return NoBatches{};
  }
}

/// Checks that a rank steps on its own part of a loader's batches. Otherwise ranks would repeat some samples and omit
/// others. To do that on purpose, pass the batches instead of the loader's object.
/// @throws ConfigError if the loader was started with another split
template <class Batches>
void check_split(Batches const& from, data::Split const& own) {
  auto const split = split_of(from);
  if (!split || own.count == own.all) return;
  if (split->first * own.all == own.first * split->all && split->count * own.all == own.count * split->all) return;
  auto const part = [](data::Split const& s) {
    return "from " + std::to_string(s.first) + " on, " + std::to_string(s.count) + " of " + std::to_string(s.all);
  };
  throw ConfigError("step: the loader was started for the shards " + part(*split) +
                    ", but this rank takes the shards " + part(own) +
                    "; start it with loader.start(trainer.split(), epoch, 0, epoch + 1), or, if each rank's loader "
                    "has its own samples, pass held.batches() of the result of next()");
}

/// Checks the options of a step.   @throws ConfigError with name, value and rule
template <class StepOptions, class Optimizer>
void check_step(StepOptions const& options, Optimizer const& optimizer, std::size_t batches, int shards) {
  if (batches == 0 || batches % static_cast<std::size_t>(shards) != 0)
    throw ConfigError("step: the number of batches is " + std::to_string(batches) + "; it must be " +
                      std::to_string(shards) +
                      ", one for each device or shard of this process, or a multiple, whose gradients are summed");
  auto const not_negative = [](char const* name, double value) {
    if (!(value >= 0) || !std::isfinite(value))
      throw ConfigError(std::string("step: ") + name + " is " + shortest(value) +
                        "; it must be a finite number of at least 0");
  };
  not_negative("rate_factor", options.rate_factor), not_negative("clip_norm", options.clip_norm);
  optim::check_settings(optimizer);
}

}}}  // namespace lockstep::train::detail
