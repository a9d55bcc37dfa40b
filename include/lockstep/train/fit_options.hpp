// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/optim/loss_scaler.hpp>
#include <lockstep/optim/plateau.hpp>
#include <lockstep/optim/schedule.hpp>
#include <lockstep/train/checkpoint.hpp>
#include <lockstep/train/observer.hpp>
#include <lockstep/train/trace.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// How Trainer::fit trains.
struct FitOptions {
  Index epochs = 1;                  ///< at most; 0: as many as max_steps takes
  Index max_steps = 0;               ///< optimizer steps at most; 0 leaves it to the epochs
  Index accumulation = 1;            ///< micro-batches in one optimizer step
  double clip_norm = 0;              ///< largest norm of the mean gradient; 0 does not clip
  optim::Schedule schedule{};        ///< factor on the optimizer's learning rate, by step
  optim::LossScaler loss_scaler{};   ///< where activations are float16: of their gradients
  Index check_replicas_every = 0;    ///< steps after which replicas compare their bits; 0 never
  Index evaluate_every_epochs = 1;   ///< epochs from one evaluation to the next, and at the end; 0 never
  Index evaluate_every_steps = 0;    ///< the same in optimizer steps, where it is not 0
  Index patience = 0;                ///< evaluations in a row, none the best, that end the run; 0 never
  optim::Plateau plateau{};          ///< how the learning rate falls where evaluations no longer become better
  std::string judge_by = "loss";     ///< which evaluation is best: of the least "loss", or a metric's best value
  train::Checkpoints checkpoints{};  ///< where the run is saved, and where it goes on
  std::stop_token stop{};            ///< once any rank's is requested, all save and end, after the same step
  std::vector<train::Observer*> observers{};
  /// On GPUs, takes after the first step the algorithms that were fastest for its products, of those that the library
  /// offers; rank 0 times them, all take them, checkpoints keep them. Bits then differ from run to run.
  bool timed_products = false;
  bool dry_run = false;           ///< does all that comes before the first step, computes one batch, and learns nothing
  train::Trace* trace = nullptr;  ///< filled by some of the steps; on all ranks, or on none
  /// What else all ranks must have alike, such as {"dropout", "0.1"}: what a model computes, and its shapes do not
  /// tell.
  std::vector<std::pair<std::string, std::string>> alike{};
};

/// One step of Trainer::step. Alike on all ranks.
struct StepOptions {
  double rate_factor = 1;           ///< on the optimizer's learning rate
  double clip_norm = 0;             ///< largest norm of the mean gradient; 0 does not clip
  optim::LossScaler loss_scaler{};  ///< where activations are float16: of their gradients
};

}}  // namespace lockstep
