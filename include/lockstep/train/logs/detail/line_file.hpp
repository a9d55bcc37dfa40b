// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/file_descriptor.hpp>
#include <lockstep/core/file_remedy.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/train/detail/close_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Log file of lines in the order of steps. A line is complete in the file when it is written.
class LineFile {
 public:
  explicit LineFile(std::string path) : path_(std::move(path)) {}

  [[nodiscard]] std::string const& path() const noexcept { return path_; }

  /// Opens the file, and creates it if it is missing. Removes the lines of steps after `step`, all lines for step 0,
  /// and an incomplete last line. step_of(line, number) returns the step of a line; numbers count from 1. Returns the
  /// bytes that remain. A pipe or a device, such as /dev/stderr, is written to as it is.
  /// @param metrics names of an evaluation's values, which limit the length of a line
  /// @throws DataError if the file cannot be created, or has a line that is longer than any of a run
  template <class StepOf>
  ::off_t truncate_after(Index step, std::vector<std::string> const& metrics, StepOf const& step_of) {
    if (is_stream()) return 0;
    open();
    auto const max_line_bytes = longest_line(metrics);
    std::unique_ptr<std::FILE, CloseFile> const file(step == 0 ? nullptr : std::fopen(path_.c_str(), "re"));
    ::off_t end = 0;
    std::string line;
    Index number = 0;
    for (int c; file && (c = std::getc(file.get())) != EOF;) {
      if (c != '\n') {
        line += static_cast<char>(c);
        if (line.size() > max_line_bytes)
          throw DataError(path_ + ":" + std::to_string(number + 1) + ": the line is longer than " +
                          std::to_string(max_line_bytes) +
                          " bytes, which no run with these metrics writes; remove the file");
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
  /// Returns whether there is something at the path that is no regular file.
  [[nodiscard]] bool is_stream() const {
    struct ::stat found {};
    if (::stat(path_.c_str(), &found) != 0 || S_ISREG(found.st_mode)) return false;
    if (S_ISBLK(found.st_mode)) throw DataError(path_ + ": is a block device; name a file");
    return true;
  }
  void open() {
    // O_NONBLOCK: opening a pipe without a reader is an error, since a wait would ignore a request to stop.
    FileDescriptor opened(
        ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666));
    if (opened.get() < 0 && errno == ENXIO)
      throw DataError(path_ + ": is a pipe without a reader; start its reader first");
    if (opened.get() < 0 || ::fcntl(opened.get(), F_SETFL, O_APPEND) != 0) fail("create");
    file_.reset(::fdopen(opened.get(), "a"));
    if (!file_) fail("create");
    opened.release();
  }
  [[noreturn]] void fail(char const* what) const {
    auto const reason = errno;
    throw DataError(path_ + ": cannot " + what + " the file: " + std::strerror(reason) + file_remedy(reason));
  }

  /// Returns an upper bound of a line's bytes: an evaluation has a number for each metric, in JSON with its name, of
  /// which a byte takes 6 at most.
  [[nodiscard]] static std::size_t longest_line(std::vector<std::string> const& metrics) noexcept {
    constexpr std::size_t others = std::size_t{1} << 20, number = 32;
    auto bytes = others;
    for (auto const& name : metrics) bytes += 6 * name.size() + number;
    return bytes;
  }

  std::string path_;
  std::unique_ptr<std::FILE, CloseFile> file_;
};

}}}  // namespace lockstep::train::detail
