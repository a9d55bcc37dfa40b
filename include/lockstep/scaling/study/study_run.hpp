// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/scaling/compared_run.hpp>
#include <lockstep/scaling/prediction.hpp>
#include <lockstep/scaling/study/study_entry.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

namespace detail {
/// Returns the path of the entry of a run's folder.
[[nodiscard]] std::string entry_of(std::string directory);
/// Returns the last part of a path.
[[nodiscard]] std::string folder_name(std::string const& directory);
}  // namespace detail

/// A saved run of a study.
struct StudyRun {
  std::string directory;                   ///< its --save-dir
  std::string example;                     ///< name of the program, as in run.json
  std::string backend;                     ///< "host" or "cuda", as in run.json
  std::string engine;                      ///< engine between ranks, as in run.json
  std::string precision;                   ///< of activations, as in run.json
  std::string data;                        ///< path of the training data; empty: the trainer's own
  std::string dataset;                     ///< name of the training data, for people
  Index parameters = 0;                    ///< of the model
  Index batch = 0;                         ///< samples of a batch, see `batch_is_global`
  bool batch_is_global = false;            ///< over all devices (--global-batch-size), instead of for each
  Index repeat = 0;                        ///< value of --seed; runs of one seed are compared bit by bit
  ComparedRun run = {};                    ///< its rate is without the warm-up epochs
  std::optional<Workload> workload = {};   ///< for predictions; empty if no step was timed
  std::vector<double> epoch_seconds = {};  ///< without the warm-up epochs
  Index left_out_epochs = 0;               ///< warm-up epochs that are left out
  Index unread_lines = 0;                  ///< lines of the log that could not be read
  std::optional<StudyEntry> entry = {};    ///< if a study made the run

  /// Reads a finished run.
  /// @param warmup_epochs first epochs that epoch times and rates leave out, if at least one epoch is left
  /// @throws DataError if run.json is missing or cannot be read
  [[nodiscard]] static StudyRun read(std::string const& directory, Index warmup_epochs);

  /// Returns a name for people of training data at `path`: its file's name without extension, or its folder's name if
  /// the file's says only that it holds training data.
  [[nodiscard]] static std::string dataset_name(std::string const& path);

  /// Returns what runs of one table have in common, as a key; except the number of parameters.
  [[nodiscard]] std::string group_key() const;
};

/// A run without a result, and the known facts about it.
struct MissingRun {
  std::string name;                      ///< of its folder
  std::string directory;                 ///< path of its folder
  std::string reason;                    ///< sentence: message of a failure, or what can be read of the run
  std::optional<StudyEntry> entry = {};  ///< if a study made the run
  bool failed = false;                   ///< ended with an error; else unfinished or unreadable
  bool is_in_group = false;              ///< counted by a configuration of a group

  /// Describes an unfinished run by its log.
  /// @param why reason for which run.json is not used; may be empty
  [[nodiscard]] static MissingRun unfinished(std::string const& directory, std::string const& why);
};

/// Folders of runs below some folders.
struct FoundRuns {
  std::vector<std::string> finished;    ///< with run.json
  std::vector<std::string> unfinished;  ///< only with a log
  std::vector<std::string> entries;     ///< files of StudyEntry

  /// Searches folders and all folders below them. Follows no links to folders below the roots. Each run is found once.
  /// @throws DataError if a root is no folder, or no run is below any root
  [[nodiscard]] static FoundRuns below(std::vector<std::string> const& roots);
};

}}}  // namespace lockstep::scaling

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/scaling/study/study_run.ipp>
#endif
