// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include <lockstep/app/detail/flag_names.hpp>
#include <lockstep/app/trainer_program.hpp>
#include <lockstep/core/error.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {

namespace detail {
/// Returns the flag of a word, "--batch_size=3", as "--batch-size"; empty if it is none.
[[nodiscard]] inline std::string flag_of(std::string const& word) {
  return word.starts_with("--") ? FlagNames::with_dashes(word.substr(0, word.find('='))) : std::string();
}
}  // namespace detail

LOCKSTEP_INLINE TrainerProgram::TrainerProgram(std::vector<std::string> words, std::string const& caller,
                                               std::vector<std::string_view> const& reserved)
    : words_(std::move(words)) {
  namespace fs = std::filesystem;
  auto& path = words_.at(0);
  if (path.find('/') == std::string::npos) path = (fs::read_symlink("/proc/self/exe").parent_path() / path).string();
  if (::access(path.c_str(), X_OK) != 0 || fs::is_directory(path))
    throw ConfigError(path + ": cannot be started; name a trainer by its path, or by its name if it is next to " +
                      caller);
  for (auto const& word : words_)
    for (auto const own : reserved)
      if (detail::flag_of(word) == own)
        throw ConfigError(word + ": " + caller + " sets this flag for each run; leave it out, or give " +
                          "--devices and --save-dir before the trainer's name");
}

LOCKSTEP_INLINE std::string TrainerProgram::name() const {
  return std::filesystem::path(words_[0]).filename().string();
}

LOCKSTEP_INLINE bool TrainerProgram::has(std::string_view flag) const {
  return std::any_of(words_.begin(), words_.end(), [&](auto const& word) { return detail::flag_of(word) == flag; });
}

LOCKSTEP_INLINE std::vector<std::string> TrainerProgram::without(std::string_view flag) const {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < words_.size(); ++i)
    if (detail::flag_of(words_[i]) != flag)
      out.push_back(words_[i]);
    else if (words_[i].find('=') == std::string::npos)
      ++i;
  return out;
}

LOCKSTEP_INLINE launch::ProgramEnd run_trainer(std::vector<std::string> const& words, std::string const& place,
                                               std::string const& log_file) {
  bool const terminal = ::isatty(1) == 1;
  std::ofstream log(log_file);
  auto const end = launch::run_program(words, [&](int, std::string const& line) {
    log << line << '\n';
    std::printf(terminal ? "\r\x1b[K%s: %s" : "%s: %s\n", place.c_str(), line.c_str());
    std::fflush(stdout);
  });
  if (terminal) std::printf("\r\x1b[K");
  return end;
}

LOCKSTEP_INLINE std::string failure_of(launch::ProgramEnd const& end) {
  return end.last_error.empty() ? "ended with exit code " + std::to_string(end.exit_code) : end.last_error;
}

}}}  // namespace lockstep::app
