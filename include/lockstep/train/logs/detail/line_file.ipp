// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <lockstep/core/error.hpp>
#include <lockstep/core/file_descriptor.hpp>
#include <lockstep/core/file_remedy.hpp>
#include <lockstep/train/logs/detail/line_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE std::vector<std::string> names_of_values(StartReport const& report) {
  auto names = report.metrics;
  for (auto const& name : report.loss_parts)
    if (std::find(report.metrics.begin(), report.metrics.end(), name) == report.metrics.end()) names.push_back(name);
  return names;
}

LOCKSTEP_COLD_INLINE LineFile::LineFile(std::string path) : path_(std::move(path)) {}

LOCKSTEP_COLD_INLINE LineFile::~LineFile() = default;
LOCKSTEP_COLD_INLINE LineFile::LineFile(LineFile&&) noexcept = default;
LOCKSTEP_COLD_INLINE LineFile& LineFile::operator=(LineFile&&) noexcept = default;

LOCKSTEP_COLD_INLINE ::off_t LineFile::truncate_after(
    Index step, std::vector<std::string> const& values,
    std::function<Index(std::string const& line, Index number)> const& step_of) {
  if (is_stream()) return 0;
  open();
  auto const max_line_bytes = longest_line(values);
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

LOCKSTEP_INLINE void LineFile::write(std::string const& line) {
  if (!file_) open();
  if (std::fprintf(file_.get(), "%s\n", line.c_str()) < 0 || std::fflush(file_.get()) != 0) fail("write");
}

LOCKSTEP_COLD_INLINE bool LineFile::is_stream() const {
  struct ::stat found {};
  if (::stat(path_.c_str(), &found) != 0 || S_ISREG(found.st_mode)) return false;
  if (S_ISBLK(found.st_mode)) throw DataError(path_ + ": is a block device; name a file");
  return true;
}

LOCKSTEP_COLD_INLINE void LineFile::open() {
  // O_NONBLOCK: opening a pipe without a reader is an error, since a wait would ignore a request to stop.
  FileDescriptor opened(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666));
  if (opened.get() < 0 && errno == ENXIO)
    throw DataError(path_ + ": is a pipe without a reader; start its reader first");
  if (opened.get() < 0 || ::fcntl(opened.get(), F_SETFL, O_APPEND) != 0) fail("create");
  file_.reset(::fdopen(opened.get(), "a"));
  if (!file_) fail("create");
  opened.release();
}

LOCKSTEP_COLD_INLINE void LineFile::fail(char const* what) const {
  auto const reason = errno;
  throw DataError(path_ + ": cannot " + what + " the file: " + std::strerror(reason) + file_remedy(reason));
}

LOCKSTEP_COLD_INLINE std::size_t LineFile::longest_line(std::vector<std::string> const& values) noexcept {
  constexpr std::size_t others = std::size_t{1} << 20, number = 32;
  auto bytes = others;
  for (auto const& name : values) bytes += 6 * name.size() + number;
  return bytes;
}

}}}  // namespace lockstep::train::detail
