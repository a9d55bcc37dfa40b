// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/core/option_descriptor.hpp>
#include <lockstep/optim/loss_scaler.hpp>
#include <lockstep/optim/plateau.hpp>
#include <lockstep/optim/schedule.hpp>
#include <lockstep/train/checkpoint/checkpoint.hpp>
#include <lockstep/train/logs/observer.hpp>
#include <lockstep/train/trace/trace.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Options of Trainer::fit.
struct FitOptions {
  Index epochs = 1;                  ///< largest number of epochs; 0: until max_steps, or no step without max_steps
  Index max_steps = 0;               ///< largest number of optimizer steps; 0 for no limit
  Index accumulation = 1;            ///< micro-steps per optimizer step
  double clip_norm = 0;              ///< largest norm of the mean gradient; 0 disables clipping
  optim::Schedule schedule{};        ///< learning-rate multiplier by step
  optim::LossScaler loss_scaler{};   ///< loss scaling for float16 activations
  Index check_replicas_every = 0;    ///< steps between comparisons of the replicas' bits; 0 disables them
  Index evaluate_every_epochs = 1;   ///< epochs between evaluations, with one at the end; 0 disables them
  Index evaluate_every_steps = 0;    ///< steps between evaluations, with one at the end; 0: evaluate_every_epochs
                                     ///< applies
  Index patience = 0;                ///< evaluations in a row without improvement that stop the run; 0 disables
  optim::Plateau plateau{};          ///< learning-rate reduction if evaluations stop improving
  double min_delta = 0;              ///< least improvement of best_by's value that counts for patience and plateau
  std::string best_by = "loss";      ///< "loss", or the metric that decides which evaluation is best
  train::Checkpoints checkpoints{};  ///< where the run saves and resumes
  std::stop_token stop{};            ///< if any rank requests a stop, all ranks save and stop after the same step
  std::vector<std::string> loss_parts{};      ///< parts of the loss, named by nn::named_loss, that logged steps report
  std::vector<train::Observer*> observers{};  ///< called in this order; not owned
  /// Chooses the fastest of the library's GEMM algorithms on GPUs: before the first step for the products of
  /// `shapes_ahead`, or else after it for its own. Rank 0 times them, all ranks use its choice, and checkpoints keep
  /// it. Results then differ in bits from run to run.
  bool autotune_gemm = false;
  /// Largest number of shapes of batches for which a GPU's memory, plans and recordings are made before the first step;
  /// 0: none. Results have the same bits.
  Index shapes_ahead = 16;
  bool dry_run = false;           ///< does all work before the first step and computes one batch, without learning
  train::Trace* trace = nullptr;  ///< receives the trace of some steps; set it on all ranks or on none
  /// Further settings that must be equal on all ranks, such as {"dropout", "0.1"}. Use them for settings that change
  /// the computation but not the model's shapes.
  std::vector<std::pair<std::string, std::string>> equal_on_all_ranks{};
};

/// Describes the options of a fit that are numbers, switches or words. A trainer's flags, the checks of `fit` and the
/// comparison between ranks follow from it.
[[nodiscard]] OptionList describe(FitOptions& options);
/// Describes options that are only read.
[[nodiscard]] OptionList const describe(FitOptions const& options);

/// Options of one Trainer::step, equal on all ranks.
struct StepOptions {
  double rate_factor = 1;           ///< learning-rate multiplier
  double clip_norm = 0;             ///< largest norm of the mean gradient; 0 disables clipping
  optim::LossScaler loss_scaler{};  ///< loss scaling for float16 activations
};

}}  // namespace lockstep

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/trainer/fit_options.ipp>
#endif
