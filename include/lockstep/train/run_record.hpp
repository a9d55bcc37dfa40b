// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include <lockstep/optim/loss_scaler.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/parallel/wire_format.hpp>
#include <lockstep/train/observer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Where the seconds of a rank's run went.
struct RankSeconds {
  double data_wait = 0;
  double compute = 0;        ///< forward and backward
  double communication = 0;  ///< not hidden behind backward, waiting for slower ranks included
  double optimizer = 0;
};

/// What a run was and how it went: everything that run.json says and the verdict is drawn from. Seconds are of this
/// process; losses, samples and metrics are of all.
struct RunRecord {
  std::string parallel, engine;
  int world_size = 1;
  int devices = 1;               ///< of this process
  int threads = 1;               ///< of each device
  int reproducible = 0;          ///< shards of a micro-step under parallel::Reproducible, or 0
  bool shard_optimizer = false;  ///< each rank kept the optimizer's moments for its part of the parameters only
  /// What gradients were sent as.
  parallel::WireFormat gradient_wire = parallel::WireFormat::float32;
  Index batch_size = 0;  ///< of each device
  Index effective_batch_size = 0;
  Index parameters = 0;
  Index steps = 0;  ///< of the whole run, as are samples: what was done before it went on from a checkpoint counts
  Index samples = 0;
  Index samples_before = 0;       ///< of those, before it went on
  std::vector<Index> resumed_at;  ///< the steps at which it did, earliest first
  bool stopped = false;           ///< it ended before it was over, because it was asked to
  double training_seconds = 0;    ///< evaluations left out
  std::vector<double> step_seconds;
  std::vector<double> epoch_seconds;
  double data_wait_seconds = 0;
  parallel::PhaseSeconds phases;   ///< of the whole run
  std::vector<RankSeconds> ranks;  ///< of each, in order
  parallel::SessionReport session;
  double run_began = 0;   ///< Clock::seconds(); as though there had been no pause
  double pass_began = 0;  ///< Clock::seconds() when the last step had its first batch: zero of the buckets' times
  double train_loss = 0;  ///< mean over the last epoch
  std::vector<EvaluationReport> evaluations;
  std::string timed_products;           ///< which algorithms GPUs took, where they were chosen by time
  optim::LossScaler::State loss_scale;  ///< at the end, where activations are float16

  /// A step has taken so long, and with it so many samples of the run were seen.
  void add_step(double seconds, Index all_samples) {
    step_seconds.push_back(seconds);
    training_seconds += seconds;
    samples = all_samples;
  }
  /// The step at which this part of the run began.
  [[nodiscard]] Index resumed() const noexcept { return resumed_at.empty() ? 0 : resumed_at.back(); }
  /// Of what was trained since then, as are all seconds.
  [[nodiscard]] double samples_per_second() const noexcept {
    return training_seconds == 0 ? 0 : static_cast<double>(samples - samples_before) / training_seconds;
  }
  [[nodiscard]] double milliseconds_of_step(double seconds) const noexcept {
    return steps == resumed() ? 0 : seconds * 1e3 / static_cast<double>(steps - resumed());
  }
  /// The q-quantile of the steps' seconds, q in [0, 1]; 0 without steps.
  [[nodiscard]] double step_quantile(double q) const {
    if (step_seconds.empty()) return 0;
    auto sorted = step_seconds;
    auto const at = static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1));
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(at), sorted.end());
    return sorted[at];
  }
};

}}}  // namespace lockstep::train
