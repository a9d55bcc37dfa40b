// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>

#include <lockstep/train/observer.hpp>
#include <lockstep/train/safetensors.hpp>

namespace lockstep::inline LOCKSTEP_ABI::train {

/// Saves a trainer's parameters and buffers, with `metadata`, whenever an evaluation is the best so far by
/// `FitOptions::judge_by`: the file is always that of the best, whole or not at all. For one rank only; the trainer
/// outlives it.
/// @throws DataError, which ends the run, when the file cannot be written
template <class Trainer>
class KeepBest final : public Observer {
 public:
  KeepBest(Trainer const& trainer, std::string path, Metadata metadata = {})
      : trainer_(&trainer), path_(std::move(path)), metadata_(std::move(metadata)) {}

  void evaluation(EvaluationReport const& report) override {
    if (report.best) save_parameters(path_, trainer_->layout(), trainer_->values(), metadata_, trainer_->buffers());
  }

 private:
  Trainer const* trainer_;
  std::string path_;
  Metadata metadata_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::train
