// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/launch/run/run_program.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {

/// A trainer that a program runs several times, with flags that the program does not choose.
class TrainerProgram {
 public:
  /// @param words the trainer's name or path, followed by its flags; a name without "/" is looked up next to the
  /// running program
  /// @param caller the running program's name, for messages
  /// @param reserved flags that the caller sets for each run
  /// @throws ConfigError if the trainer cannot be started, or a reserved flag is given
  TrainerProgram(std::vector<std::string> words, std::string const& caller,
                 std::vector<std::string_view> const& reserved);

  /// Returns path and flags.
  [[nodiscard]] std::vector<std::string> const& words() const noexcept { return words_; }
  /// Returns the program's name, without folders.
  [[nodiscard]] std::string name() const;
  /// Returns whether a flag is given, with or without "=" and in any spelling.
  [[nodiscard]] bool has(std::string_view flag) const;
  /// Returns path and flags without a flag that takes a value.
  [[nodiscard]] std::vector<std::string> without(std::string_view flag) const;

 private:
  std::vector<std::string> words_;
};

/// Runs a trainer to its end with all flags. Shows each line of its output after `place`, in one line on a terminal,
/// and keeps all lines in a log.
launch::ProgramEnd run_trainer(std::vector<std::string> const& words, std::string const& place,
                               std::string const& log_file);

/// Returns the sentence for a run that failed: its last error message, or its exit code.
[[nodiscard]] std::string failure_of(launch::ProgramEnd const& end);

}}}  // namespace lockstep::app

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/app/trainer_program.ipp>
#endif
