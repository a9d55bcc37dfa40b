// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/core/json_writer.hpp>
#include <lockstep/scaling/detail/rounded.hpp>
#include <lockstep/scaling/saved_run.hpp>
#include <lockstep/scaling/step_profile.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

/// Whether two runs learned the same parameters.
enum class Agreement {
  equal,           ///< bit-identical parameters
  rounding,        ///< evaluation losses that differ by no more than rounding explains
  other_settings,  ///< a setting that decides what is learned differs: no agreement expected
  other_work,      ///< the number of steps or the effective batch differs: no agreement expected
  unknown,         ///< rounding may explain other parameters, and a run has no evaluation to compare
  none,            ///< the runs should agree, and do not
};

/// A saved run as a row of a comparison with others.
struct ComparedRun {
  std::string name;                    ///< name of its directory
  std::string parallel;                ///< "single", "dp" or "ddp"
  Index ranks = 1;                     ///< number of ranks
  Index devices = 1;                   ///< devices of each rank
  Index steps = 0;                     ///< optimizer steps
  Index shards = 1;                    ///< shards of each micro-step; runs with equal shards are bit-identical
  StepProfile profile;                 ///< speed and phases
  double training_seconds = 0;         ///< seconds of the steps, without evaluations and start-up
  bool has_evaluation = true;          ///< whether the run was evaluated
  double loss = 0;                     ///< loss of the last evaluation; nan if it is not a number, or without one
  std::string metric = "accuracy";     ///< first metric of the evaluation, accuracy if it has that
  double metric_value = std::nan("");  ///< nan if the evaluation has no metric
  Index evaluated = 0;                 ///< samples of the last evaluation; 0: unknown
  std::string parameters_sha256;       ///< of the final parameters
  std::vector<double> device_bytes;    ///< peak memory of each device, in order
  std::map<std::string, std::string> settings;  ///< settings that decide what is learned, by name

  /// Reads a run from its --save-dir.
  /// @throws DataError if it is no finished run
  [[nodiscard]] static ComparedRun read(std::string const& directory);

  /// Returns whether both runs took equally many steps with batches of equal size.
  [[nodiscard]] bool has_equal_work(ComparedRun const& other) const noexcept;

  /// Returns this run's settings that differ, with the values of `other` in parentheses: "lr 0.002 (0.001), dropout 0.2
  /// (not given)".
  [[nodiscard]] std::string differences(ComparedRun const& other) const;

  /// Compares the learned parameters, or the evaluation losses if rounding may differ.
  [[nodiscard]] Agreement agreement(ComparedRun const& other) const;
  /// Returns the agreement as a sentence.
  [[nodiscard]] std::string agreement_summary(ComparedRun const& other) const;

  /// Returns the reference for run `i`: an earlier run with equal work and equally many shards, else the first run.
  [[nodiscard]] static ComparedRun const& reference_run(std::span<ComparedRun const> runs, std::size_t i);

 private:
  // Runs of equal global batches differ only by rounding. AdamW divides by the root of small second moments. Rounding
  // thus changes parameters by whole learning rates, in both directions, and the evaluation loss by much less. There is
  // no derived bound. This is the largest difference that counts as agreement.
  static constexpr double max_rounding_difference = 0.02;

  // Flags without a descriptor for the place and mode of computation, and for files. The batch size shows in the steps.
  static constexpr std::string_view ignored_settings =
      " backend batch-size bucket-cap-mb config devices engine global-batch-size local-rank nproc parallel predictions "
      "prefetch-factor reproducible resume save-dir threads trace ";
  /// Returns whether runs may differ in a setting without a word about it.
  [[nodiscard]] static bool is_ignored(std::string_view setting);

  // An evaluation that is not a number is saved as null.
  static double number(json::Value const& value) { return value.is_null() ? std::nan("") : value.number(); }

  void take_metric(json::Value const& final);

  static std::map<std::string, std::string> settings_of(json::Value const& run);
};

}}}  // namespace lockstep::scaling

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/scaling/compared_run.ipp>
#endif
