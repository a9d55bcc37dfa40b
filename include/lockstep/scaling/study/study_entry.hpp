// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

/// One run of a study: its plan, and how it ended. The study keeps it in a file next to the run's folder, as
/// NAME.entry.json, so that a failed or unfinished run is known, too.
struct StudyEntry {
  /// State of the run.
  enum class State {
    planned,   ///< not started
    running,   ///< started, and not known to have ended
    finished,  ///< ended with a result
    failed,    ///< ended without one
  };

  std::string name;                       ///< of the run's folder
  std::string example;                    ///< name of the program
  std::string parallel;                   ///< "single", "dp" or "ddp"
  Index devices = 1;                      ///< ranks x devices of each
  std::optional<Index> batch_size = {};   ///< per device; empty: the trainer's own
  std::string data = {};                  ///< as given with --data; empty: the trainer's own
  Index repeat = 1;                       ///< from 1
  std::vector<std::string> command = {};  ///< the program's path, followed by its arguments
  Index processors = 0;                   ///< of the machine that ran it; 0: unknown
  State state = State::planned;           ///< of the run
  int exit_code = 0;                      ///< of the program; 0 until it ends
  std::string message = {};               ///< of a failure
  double seconds = 0;                     ///< from the start of the program to its end
  std::size_t peak_resident_bytes = 0;    ///< of the process that needs most

  static constexpr char suffix[] = ".entry.json";  ///< end of the file's name

  /// Returns the content of the file.
  [[nodiscard]] std::string json() const;
  /// Reads an entry from its file.
  /// @throws DataError if the file cannot be read, or is no entry
  [[nodiscard]] static StudyEntry read(std::string const& path);
};

}}}  // namespace lockstep::scaling

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/scaling/study/study_entry.ipp>
#endif
