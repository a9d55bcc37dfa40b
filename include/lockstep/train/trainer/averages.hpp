// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include <lockstep/optim/averaged.hpp>
#include <lockstep/train/trainer/detail/averaged_parameters.hpp>
#include <lockstep/train/trainer/trainer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Returns the moving average of the parameters, in the order of `trainer.values()`, for a Predictor or
/// train::save_parameters. The trainer's optimizer is an optim::Averaged.
/// @collective with DistributedDataParallel
template <class Model, class Optimizer, class Policy>
[[nodiscard]] std::vector<float> averages(Trainer<Model, Optimizer, Policy>& trainer) {
  static_assert(optim::averages<Optimizer>,
                "Lockstep: train::averages needs a trainer whose optimizer keeps averages, such as "
                "optim::Averaged{optim::AdamW{}, 0.999}");
  if (trainer.state().averages_in_place) {
    auto const values = trainer.values();
    return {values.begin(), values.end()};
  }
  return detail::averaged_values(trainer.session());
}

}}}  // namespace lockstep::train
