// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/scaling/fabric.hpp>
#include <lockstep/scaling/prediction.hpp>
#include <lockstep/scaling/study/configuration.hpp>
#include <lockstep/scaling/study/study_run.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

/// Settings of a report on saved runs.
struct StudyOptions {
  Index warmup_epochs = 0;                 ///< first epochs that times and rates leave out
  std::vector<std::string> datasets = {};  ///< names of the data to report on; empty: all
  Link link = Link::automatic;             ///< of predictions
  std::optional<double> alpha_us = {};     ///< latency of that link in microseconds; unset: from its kind
  std::optional<double> beta_gb_s = {};    ///< bandwidth of that link in GB/s; unset: from its kind
};

/// Origin of the speed of one device.
enum class BaselineKind {
  measured,   ///< a run on a single device
  predicted,  ///< from a run on several
  none,       ///< no run timed its steps
};

/// Runs that are comparable: one program, model, data set and batch.
struct StudyGroup {
  std::string dataset;              ///< name of the training data
  std::string title;                ///< the data set, with the batch if several groups have the data set
  std::string slug;                 ///< for names of files
  std::string description;          ///< program, model and batch
  std::string apart;                ///< settings in which it differs from an earlier group of the data set; empty: none
  std::string metric = "accuracy";  ///< name of the metric of the last evaluation
  Scaling scaling = Scaling::weak;  ///< as the runs' batches
  std::vector<Configuration> configurations{};      ///< by devices, then single, dp, ddp
  BaselineKind baseline_kind = BaselineKind::none;  ///< origin of `baseline`
  Configuration baseline = {};                      ///< one device, measured or predicted
  std::optional<Workload> workload = {};            ///< for predictions
  Fabric fabric = {};                               ///< of predictions
  std::vector<Prediction> curve = {};               ///< of ddp on 1, 2, 4 … 1024 devices
  std::vector<Configuration> predicted = {};        ///< dp and ddp on 8 devices unless they were measured

  static constexpr Index predicted_devices = 8;  ///< of the predicted rows

  /// Returns one of the runs, which have program, model and batch in common.
  [[nodiscard]] StudyRun const& any_run() const;
  /// Returns the configuration with the most samples per second; null if no run has a speed.
  [[nodiscard]] Configuration const* fastest() const noexcept;
  /// Returns a measured or predicted configuration; null if there is none.
  [[nodiscard]] Configuration const* find(std::string const& parallel, Index devices) const noexcept;
  /// Returns the largest number of devices that were measured under a policy; 0 if none was.
  [[nodiscard]] Index most_devices(std::string const& parallel) const noexcept;
  /// Returns a sentence about the fastest configuration.
  [[nodiscard]] std::string summary() const;
  /// Returns a sentence about the baseline.
  [[nodiscard]] std::string baseline_summary() const;
  /// Compares parameters of dp and ddp on a number of devices: "equal", "rounding", "differ" or "n/a".
  [[nodiscard]] std::string parameters_equal(Index devices) const;
};

/// Predicts DataParallel on `devices` devices from a run of it on fewer: the first device sums the gradients of all
/// others one after another, which takes the measured communication without the wait for the slowest device; it
/// updates, and one loader feeds all devices, in the measured time for a batch. As for ddp's row next to it, devices
/// have processors of their own: the ceiling of a machine is not known beyond its own processors.
[[nodiscard]] Prediction predict_data_parallel(Workload const& work, StepProfile const& measured, Index devices,
                                               Scaling scaling);

/// Saved runs, grouped and compared.
struct Study {
  std::vector<StudyGroup> groups;   ///< by data set and batch
  std::vector<MissingRun> missing;  ///< failed, unfinished and unreadable runs
  std::vector<std::string> notes;   ///< sentences about the data
  StudyOptions options;             ///< settings of the report

  /// Reads all runs below some folders.
  /// @throws DataError if there is none, ConfigError if no run has one of the wanted data sets
  [[nodiscard]] static Study read(std::vector<std::string> const& roots, StudyOptions const& options = {});
  /// Compares runs.
  [[nodiscard]] static Study of(std::vector<StudyRun> runs, std::vector<MissingRun> missing,
                                StudyOptions const& options = {});

  /// Returns the number of runs in the tables.
  [[nodiscard]] std::size_t run_count() const noexcept;
};

}}}  // namespace lockstep::scaling

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/scaling/study/study.ipp>
#endif
