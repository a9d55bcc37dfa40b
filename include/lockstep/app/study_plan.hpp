// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include <lockstep/app/trainer_program.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/scaling/study/study_entry.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {

/// Time of a short run on a single device, from which the time of a study is estimated.
struct StudyTrial {
  double samples = 0;             ///< of a whole run on a single device
  double epochs = 1;              ///< of a whole run
  double samples_per_second = 0;  ///< of training
  double start_seconds = 0;       ///< before the first step and after the last
  double evaluation_seconds = 0;  ///< of one evaluation
  bool counts_steps = false;      ///< --max-steps ends the run, so that more devices train more samples

  /// Reads what a trainer's --dry-run says: "dry run: 2000 samples, 32 steps an epoch, 320 in all".
  /// @returns false if the line says something else
  bool read_dry_run(std::string const& line, Index batch);
};

/// Runs of a scaling study: each policy on each number of devices, for each batch size and data set, repeated.
struct StudyPlan {
  std::vector<int> devices{1, 2};                            ///< each from 1 to 256
  std::vector<std::string> parallel{"single", "dp", "ddp"};  ///< policies, as in --parallel
  std::vector<Index> batch_sizes = {};                       ///< per device; empty: the trainer's own
  std::vector<std::string> data = {};                        ///< empty: the trainer's own
  int repeat = 1;                                            ///< runs of each configuration
  std::string save_dir;                                      ///< folder with a folder and a log of each run

  /// Returns all runs, the baselines first. Equal values of a list count once. Repeats have seeds 1, 2 and so on,
  /// unless the trainer's flags have one. Each device gets the same number of threads: the processors divided by the
  /// largest number of devices, or
  /// --threads.
  [[nodiscard]] std::vector<scaling::StudyEntry> entries(TrainerProgram const& trainer, int processors) const;

  /// Returns the estimated seconds of a run.
  [[nodiscard]] static double seconds_of(scaling::StudyEntry const& entry, StudyTrial const& trial, Index threads);
};

/// Returns a duration for people: "45 s", "12 min", "3.5 h".
[[nodiscard]] std::string duration(double seconds);

/// State of a planned run in a folder of a study.
enum class StudyState {
  missing,   ///< to be run
  finished,  ///< kept
};

/// Looks for an earlier run of an entry in the study's folder, and takes over how it ended.
/// @throws ConfigError if the folder holds a run with other flags, or one that no study made
[[nodiscard]] StudyState find_earlier_run(scaling::StudyEntry& entry, std::string const& save_dir);

}}}  // namespace lockstep::app

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/app/study_plan.ipp>
#endif
