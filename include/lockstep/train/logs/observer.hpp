// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

struct RunRecord;

/// Facts known before the first step.
struct StartReport {
  Index steps = 0;    ///< optimizer steps of the whole run
  Index epochs = 0;   ///< of the whole run, the last one perhaps in part
  Index resumed = 0;  ///< step of the checkpoint that the run resumes from; 0 for a new run
  Index best = 0;     ///< step of the best evaluation so far, by the current best_by; 0 if there was none
  std::vector<std::string> metrics{};     ///< names of the values of evaluations, in order
  std::string best_by = "loss";           ///< loss or metric that decides which evaluation is best
  std::vector<std::string> loss_parts{};  ///< names of the parts of the loss that logged steps report, in order
};

/// Report of one optimizer step.
struct StepReport {
  Index step = 0;                 ///< from 1
  Index steps = 0;                ///< of the whole run
  Index epoch = 0;                ///< from 0
  double loss = 0;                ///< mean over the step's weight, of all shards
  double learning_rate = 0;       ///< of this step, without factors by parameter
  Index samples = 0;              ///< of all shards since the start of the run
  double seconds = 0;             ///< since the start of the run
  double samples_per_second = 0;  ///< of the last second or so of training, without evaluations
  double loss_scale = 0;          ///< with float16 activations, after a logged step; else 0
  Index skipped_steps = 0;        ///< with float16 activations: skipped steps of the run so far; else 0
  double gradient_norm = 0;       ///< norm of the mean gradient before clipping; 0 if clipping is off
  /// After a logged step: means of FitOptions::loss_parts over all shards, by name. NaN for a part without weight.
  std::vector<std::pair<std::string, double>> loss_parts{};

  /// Returns whether the step is logged: every step up to 100, every tenth up to 1000, every hundredth up to 10000, and
  /// so on. At least every hundredth part of the run is logged, and the last planned step. A run that stops early and
  /// resumes logs equal steps.
  [[nodiscard]] bool is_logged() const noexcept {
    Index every = 1;
    while (step / every > 100) every *= 10;
    return step % std::min(every, std::max<Index>(1, steps / 100)) == 0 || step == steps;
  }
};

/// Progress of an evaluation.
struct EvaluationProgress {
  Index done = 0;   ///< evaluated batches of this process
  Index steps = 0;  ///< all batches of this process
};

/// Progress callback: f(done, all). May be empty.
using ProgressCallback = std::function<void(Index done, Index all)>;

/// Result of one evaluation: means over all evaluation samples.
struct EvaluationReport {
  Index step = 0;                                            ///< optimizer steps before the evaluation
  Index epoch = 0;                                           ///< epoch of the last step, from 0
  Index samples = 0;                                         ///< evaluated samples of all ranks
  double loss = 0;                                           ///< mean over the weight of the evaluation
  std::vector<std::pair<std::string, double>> metrics = {};  ///< values by name, in order
  double seconds = 0;                                        ///< since the start of the run
  bool best = false;                                         ///< best so far, by FitOptions::best_by
};

/// Receives the events of a trainer, on the thread that trains. Override the functions you need. An exception of an
/// observer ends the run.
class Observer {
 public:
  virtual ~Observer() = default;
  /// Called before the first step.
  virtual void start(StartReport const&) {}
  /// Called after each optimizer step.
  virtual void step(StepReport const&) {}
  /// Called after each batch of an evaluation.
  virtual void evaluating(EvaluationProgress const&) {}
  /// Called after each evaluation.
  virtual void evaluation(EvaluationReport const&) {}
  /// Called after the last step and the last evaluation.
  virtual void finish(RunRecord const&) {}
  /// Returns whether the observer has no effect without evaluations. A fit without evaluations is then rejected before
  /// its first step.
  [[nodiscard]] virtual bool needs_evaluations() const { return false; }
};

}}}  // namespace lockstep::train
