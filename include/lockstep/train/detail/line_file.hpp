// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/train/detail/close_file.hpp>
#include <lockstep/train/detail/file_remedy.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// A log whose lines belong to steps, in their order. A line is complete in the file as soon as it is written.
class LineFile {
 public:
  explicit LineFile(std::string path) : path_(std::move(path)) {}

  [[nodiscard]] std::string const& path() const noexcept { return path_; }

  /// Opens the file, and creates it when it is missing. Drops the lines of steps behind this one, of step 0 all, and a
  /// line that was not written to its end; `step_of(line, number)` says which step the line of that number, from 1, is
  /// of. Returns the bytes that stay.
  /// @throws DataError when the file cannot be created
  template <class StepOf>
  ::off_t keep(Index step, StepOf const& step_of) {
    open();
    std::unique_ptr<std::FILE, CloseFile> const file(step == 0 ? nullptr : std::fopen(path_.c_str(), "re"));
    ::off_t end = 0;
    std::string line;
    Index number = 0;
    for (int c; file && (c = std::getc(file.get())) != EOF;) {
      if (c != '\n') {
        line += static_cast<char>(c);
        continue;
      }
      if (step_of(line, ++number) > step) break;
      end += static_cast<::off_t>(line.size()) + 1;
      line.clear();
    }
    if (::truncate(path_.c_str(), end) != 0) fail("shorten");
    return end;
  }

  void write(std::string const& line) {
    if (!file_) open();
    if (std::fprintf(file_.get(), "%s\n", line.c_str()) < 0 || std::fflush(file_.get()) != 0) fail("write");
  }

 private:
  void open() {
    file_.reset(std::fopen(path_.c_str(), "ae"));
    if (!file_) fail("create");
  }
  [[noreturn]] void fail(char const* what) const {
    auto const reason = errno;
    throw DataError(path_ + ": cannot " + what + " the file: " + std::strerror(reason) + file_remedy(reason));
  }

  std::string path_;
  std::unique_ptr<std::FILE, CloseFile> file_;
};

}}}  // namespace lockstep::train::detail
