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

/// What is known before the first step.
struct StartReport {
  Index steps = 0;  ///< optimizer steps of the whole run
  Index epochs = 0;
  Index resumed = 0;  ///< the step of a checkpoint that the run goes on from; 0: from the beginning
  Index best = 0;     ///< the step of the best evaluation until there, as it is judged now; 0: there was none
  std::vector<std::string> metrics{};  ///< what evaluations will count, by name and in their order
  std::string judge_by = "loss";       ///< the loss or metric that decides which evaluation is the best
};

/// One optimizer step.
struct StepReport {
  Index step = 0;   ///< from 1
  Index steps = 0;  ///< of the whole run
  Index epoch = 0;  ///< from 0
  double loss = 0;  ///< mean over the step's weight, all shards
  double learning_rate = 0;
  Index samples = 0;              ///< of all shards since the start of the run
  double seconds = 0;             ///< since the start of the run
  double samples_per_second = 0;  ///< of the run so far, evaluations left out
  double loss_scale = 0;          ///< where activations are float16, after a step that is logged, else 0
  Index skipped_steps = 0;        ///< of the run so far, whose gradients were not all finite; likewise
  double gradient_norm = 0;       ///< of the mean's gradient, before it is clipped; 0 where nothing is

  /// Every step up to the hundredth, then every tenth, behind the thousandth every hundredth and so on, but at least
  /// every hundredth part of the run, and the last that is planned. Where a run ends early changes nothing: one that
  /// goes on has logged the same.
  [[nodiscard]] bool is_logged() const noexcept {
    Index every = 1;
    while (step / every > 100) every *= 10;
    return step % std::min(every, std::max<Index>(1, steps / 100)) == 0 || step == steps;
  }
};

/// An evaluation under way.
struct EvaluationProgress {
  Index done = 0;   ///< batches of this process that are evaluated
  Index steps = 0;  ///< all of them
};

/// Told how much of some work is done: f(done, all). Empty: nobody is told.
using StepsMade = std::function<void(Index done, Index all)>;

/// One evaluation: means over all evaluation samples.
struct EvaluationReport {
  Index step = 0;
  Index epoch = 0;
  Index samples = 0;
  double loss = 0;
  std::vector<std::pair<std::string, double>> metrics = {};
  double seconds = 0;  ///< since the start of the run
  bool best = false;   ///< of those so far, by FitOptions::judge_by
};

/// Hears what a trainer does, on the thread that trains. Every function may be left out. What an observer throws ends
/// the run.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void start(StartReport const&) {}
  virtual void step(StepReport const&) {}
  /// After each batch of an evaluation.
  virtual void evaluating(EvaluationProgress const&) {}
  virtual void evaluation(EvaluationReport const&) {}
  virtual void finish(RunRecord const&) {}
  /// Whether it would do nothing in a fit without evaluations, which is then refused before its first step.
  [[nodiscard]] virtual bool needs_evaluations() const { return false; }
};

}}}  // namespace lockstep::train
