// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/scaling/prediction.hpp>
#include <lockstep/scaling/step_profile.hpp>
#include <lockstep/scaling/study/statistic.hpp>
#include <lockstep/scaling/study/study_run.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

/// Repeated runs of one policy on one number of devices, or a prediction of them.
struct Configuration {
  std::string parallel;             ///< "single", "dp" or "ddp"
  std::string engine;               ///< engine between ranks
  Index devices = 1;                ///< ranks x devices of each
  Index threads = 1;                ///< of each device
  bool predicted = false;           ///< whether the values are a prediction
  std::vector<StudyRun> runs = {};  ///< the repeats
  Index failed = 0;                 ///< runs that failed
  std::string message = {};         ///< of the last failure

  StepProfile profile = {};           ///< mean
  Statistic epoch_seconds = {};       ///< duration of an epoch, without warm-up epochs and evaluations
  Statistic samples_per_second = {};  ///< without warm-up epochs and evaluations
  Statistic training_seconds = {};    ///< of the steps, without evaluations and start-up
  Statistic metric = {};              ///< of the last evaluation
  Statistic loss = {};                ///< of the last evaluation
  double first_device_bytes = std::numeric_limits<double>::quiet_NaN();   ///< peak memory; nan: unknown
  double other_devices_bytes = std::numeric_limits<double>::quiet_NaN();  ///< the largest
  Statistic speed_up = {};                                                ///< over the baseline
  Statistic efficiency = {};                                              ///< speed-up as a fraction of the ideal one

  /// Returns the mean of runs of one configuration.
  [[nodiscard]] static Configuration of(std::vector<StudyRun> runs);
  /// Returns the configuration of a prediction.
  /// @param samples_per_epoch for the epoch's duration; 0: unknown
  [[nodiscard]] static Configuration predicted_from(std::string parallel, Prediction const& prediction, double samples,
                                                    double samples_per_epoch);

  /// Returns whether it has measured or predicted speed.
  [[nodiscard]] bool has_speed() const noexcept { return samples_per_second.is_known(); }
  /// Sets speed-up and efficiency over a baseline.
  void compare_with(StepProfile const& baseline, Statistic const& baseline_rate);
  /// Returns "single", "dp 2", "ddp 4".
  [[nodiscard]] std::string label() const;
  /// Returns the samples of an epoch; 0 if they are unknown.
  [[nodiscard]] double samples_per_epoch() const noexcept;
};

}}}  // namespace lockstep::scaling

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/scaling/study/configuration.ipp>
#endif
