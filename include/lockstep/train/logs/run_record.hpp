// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include <lockstep/optim/loss_scaler.hpp>
#include <lockstep/parallel/device_facts.hpp>
#include <lockstep/parallel/device_work.hpp>
#include <lockstep/parallel/distributed_options.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/train/logs/observer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Seconds of one rank's run by phase.
struct RankSeconds {
  double data_wait = 0;      ///< wait for batches
  double compute = 0;        ///< forward and backward
  double communication = 0;  ///< not hidden behind backward; includes waiting for slower ranks
  double optimizer = 0;      ///< updates of the parameters
};

/// How its host's processors served one rank since the last resume. Zeros for a model on a GPU or on several
/// devices, and for everything that the system does not say.
struct RankLoad {
  double compute_seconds = 0;    ///< processor time of the training thread in forward and backward
  double deviation_seconds = 0;  ///< standard deviation of one step's compute_seconds between steps
  double queued_seconds = 0;     ///< time in which the training thread was ready to run and had no processor
  double loader_seconds = 0;     ///< time of the loader's threads to make the batches, on average, without such waits
  double throttled_seconds = 0;  ///< time for which the quota of the control group stopped it, summed over processors
  double observed = 0;  ///< looks at loader threads in the middle of reading, taken while training waited for them
  double locked = 0;    ///< looks that found the thread waiting for a lock
  double threads = 0;   ///< training threads
  double cores = 0;     ///< processors that the rank may use
  double core_set = 0;  ///< number of the set of these processors, equal for ranks that share it
};

/// Extra time to get memory, make plans and record passes, before a run's first step and in its first steps.
struct Startup {
  double seconds = 0;  ///< in addition to median steps
  Index steps = 0;     ///< with such time
  Index shapes = 0;    ///< of batches whose passes were recorded before the first step
};

/// Record of a run, from which run.json and the verdict are made. Seconds are of this process; losses, samples and
/// metrics are of all ranks.
struct RunRecord : parallel::DistributedOptions {
  std::string parallel;               ///< name of the policy
  std::string engine;                 ///< name of the engine
  int world_size = 1;                 ///< number of ranks
  int devices = 1;                    ///< of this process
  int threads = 1;                    ///< per device
  int reproducible = 0;               ///< shards of a micro-step under parallel::Reproducible, or 0
  Index batch_size = 0;               ///< per device
  Index effective_batch_size = 0;     ///< samples of an optimizer step of all ranks
  Index parameters = 0;               ///< number of the model's parameters
  Index steps = 0;                    ///< of the whole run, like samples; includes the work before a resume
  Index samples = 0;                  ///< of all ranks; a sample counts once per epoch
  Index samples_before = 0;           ///< before the last resume
  std::vector<Index> resumed_at;      ///< steps at which the run was resumed, ascending
  bool stopped = false;               ///< stopped early on request
  bool was_complete = false;          ///< complete when it was resumed, so that nothing was done
  double training_seconds = 0;        ///< without evaluations
  double rehearsal_seconds = 0;       ///< of training_seconds, before the first step: see FitOptions::shapes_ahead
  Index rehearsed_shapes = 0;         ///< shapes of batches whose passes were recorded in this time
  std::vector<double> step_seconds;   ///< each step since the last resume
  std::vector<double> epoch_seconds;  ///< epochs that ended since the last resume, without evaluations
  double data_wait_seconds = 0;       ///< wait for batches since the last resume
  parallel::PhaseSeconds phases;      ///< of the whole run
  parallel::DeviceWork work;          ///< of this process's first GPU, since the last resume
  parallel::DeviceFacts gpu;          ///< this process's first GPU; empty on the CPU
  std::vector<RankSeconds> ranks;     ///< by rank
  RankLoad load;                      ///< of this rank
  std::vector<RankLoad> loads;        ///< by rank
  parallel::SessionReport session;    ///< buckets, memory and unused parameters
  double run_began = 0;               ///< Clock::seconds() at the start, as if the run had not paused before a resume
  double pass_began = 0;              ///< Clock::seconds() at the first batch of the last step: time 0 of the buckets
  double train_loss = 0;              ///< mean over the last epoch
  Index skipped_samples = 0;   ///< left out by the loaders of all ranks since the last resume: data::OnFailure::skip
  Index replaced_samples = 0;  ///< replaced by the loaders of all ranks since the last resume: OnFailure::substitute
  std::string unreadable_samples;  ///< list of these samples of all ranks, each once, with errors; empty if none
  std::vector<EvaluationReport> evaluations;  ///< all of the run, in order
  std::vector<std::string> loss_parts;        ///< parts of the loss that logged steps of the run have reported
  std::string gemm_algorithms;                ///< GEMM algorithms chosen by timing on GPUs; empty if none were
  optim::LossScaler::State loss_scale;        ///< at the end, with float16 activations

  RunRecord();                                       ///< makes the record of a run without steps
  ~RunRecord();                                      ///< destroys it
  RunRecord(RunRecord const& other);                 ///< copies all of it
  RunRecord(RunRecord&& other) noexcept;             ///< takes over the content
  RunRecord& operator=(RunRecord const& other);      ///< copies all of it
  RunRecord& operator=(RunRecord&& other) noexcept;  ///< takes over the content

  /// Adds a step's duration; `all_samples` is the run's number of samples so far.
  void add_step(double seconds, Index all_samples);
  /// Returns the step at which the run was last resumed, or 0.
  [[nodiscard]] Index resumed() const noexcept { return resumed_at.empty() ? 0 : resumed_at.back(); }
  /// Returns the throughput since the last resume.
  [[nodiscard]] double samples_per_second() const noexcept;
  /// Returns the extra time before the first step and in the first steps since the last resume. First steps are the
  /// first half of the steps, up to 1000; a step counts if it took more than twice the median. With fewer than eight
  /// steps, none counts.
  [[nodiscard]] Startup startup() const;
  /// Returns the throughput since the last resume, without the start-up's extra time.
  [[nodiscard]] double samples_per_second_after_startup() const;
  /// Returns seconds since the last resume as milliseconds per step; 0 without steps.
  [[nodiscard]] double ms_per_step(double seconds) const noexcept;
  /// Returns the work of an average step on a GPU; zeros on the CPU.
  [[nodiscard]] parallel::DeviceStep device_step() const noexcept { return work.per_step(steps - resumed()); }
  /// Returns the q-quantile of the steps' seconds, q in [0, 1]; 0 without steps.
  [[nodiscard]] double step_quantile(double q) const;
};

}}}  // namespace lockstep::train

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/logs/run_record.ipp>
#endif
