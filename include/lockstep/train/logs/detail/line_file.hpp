// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/train/detail/close_file.hpp>
#include <lockstep/train/logs/observer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Returns the names of the values of evaluations and of parts of the loss, each once.
[[nodiscard]] std::vector<std::string> names_of_values(StartReport const& report);

/// Log file of lines in the order of steps. A line is complete in the file when it is written.
class LineFile {
 public:
  explicit LineFile(std::string path);
  ~LineFile();
  LineFile(LineFile&&) noexcept;
  LineFile& operator=(LineFile&&) noexcept;

  [[nodiscard]] std::string const& path() const noexcept { return path_; }

  /// Opens the file, and creates it if it is missing. Removes the lines of steps after `step`, all lines for step 0,
  /// and an incomplete last line. step_of(line, number) returns the step of a line; numbers count from 1. Returns the
  /// bytes that remain. A pipe or a device, such as /dev/stderr, is written to as it is.
  /// @param values names of values, which limit the length of a line
  /// @throws DataError if the file cannot be created, or has a line that is longer than any of a run
  ::off_t truncate_after(Index step, std::vector<std::string> const& values,
                         std::function<Index(std::string const& line, Index number)> const& step_of);

  void write(std::string const& line);

 private:
  /// Returns whether there is something at the path that is no regular file.
  [[nodiscard]] bool is_stream() const;
  void open();
  [[noreturn]] void fail(char const* what) const;

  /// Returns an upper bound of a line's bytes: a line has a number for each value, in JSON with its name, of which a
  /// byte takes 6 at most.
  [[nodiscard]] static std::size_t longest_line(std::vector<std::string> const& values) noexcept;

  std::string path_;
  std::unique_ptr<std::FILE, CloseFile> file_;
};

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/logs/detail/line_file.ipp>
#endif
