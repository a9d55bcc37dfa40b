// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <functional>
#include <queue>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/file_descriptor.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/train/detail/file_remedy.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Line of a table with the index of its sample.
struct NumberedLine {
  static constexpr std::size_t header_bytes = 2 * sizeof(Index);

  Index sample = 0;
  std::string_view text;

  void append_to(std::string& bytes) const {
    for (Index const number : {sample, static_cast<Index>(text.size())})
      bytes.append(reinterpret_cast<char const*>(&number), sizeof number);
    bytes += text;
  }
  /// Returns the bytes of the line at the beginning of `bytes`; more than there are if its end is missing.
  [[nodiscard]] static std::size_t bytes_of(std::string_view bytes) noexcept {
    return bytes.size() < header_bytes ? header_bytes
                                       : header_bytes + static_cast<std::size_t>(number(bytes.substr(sizeof(Index))));
  }
  /// Takes the line at the beginning of `bytes`, which must be complete.
  [[nodiscard]] static NumberedLine take(std::string_view& bytes) noexcept {
    auto const all = bytes_of(bytes);
    NumberedLine const out{number(bytes), bytes.substr(header_bytes, all - header_bytes)};
    bytes.remove_prefix(all);
    return out;
  }

 private:
  [[nodiscard]] static Index number(std::string_view bytes) noexcept {
    Index out = 0;
    std::memcpy(&out, bytes.data(), sizeof out);
    return out;
  }
};

/// Sorts the lines of a table by their samples. Holds up to `part_bytes` in memory, and moves more to a temporary file
/// without a name in the table's folder. Lines that arrive in order form one run of that file. Otherwise each part is a
/// run, and `write_to` merges the runs, with at least 4 KiB of memory for each.
class SortedRows {
 public:
  explicit SortedRows(std::string table, std::size_t part_bytes = std::size_t{4} << 20)
      : table_(std::move(table)), part_bytes_(part_bytes) {}

  /// Adds lines as NumberedLine::append_to writes them.   @throws DataError if the temporary file cannot be written
  void add(std::string_view lines) {
    held_ += lines;
    if (held_.size() >= part_bytes_) spill();
  }
  [[nodiscard]] std::size_t held_bytes() const noexcept { return held_.capacity(); }
  [[nodiscard]] std::size_t runs() const noexcept { return runs_.size(); }

  /// Writes the lines in the order of their samples, and only the first of duplicates.
  void write_to(auto& file) {
    std::string text;
    bool any = false;
    Index last = 0;
    auto const emit = [&](NumberedLine const& line) {
      if (std::exchange(any, true) && line.sample == last) return;
      last = line.sample;
      (text += line.text) += '\n';
      if (text.size() < std::size_t{1} << 20) return;
      file.write(text);
      text.clear();
    };
    if (runs_.empty()) {
      for (auto const& line : sorted()) emit(line);
    } else {
      spill();
      merge(emit);
    }
    file.write(text);
  }

 private:
  struct Run {
    std::size_t begin, end;
    Index last;  ///< sample
  };
  /// Reads the lines of a run in order.
  class Reader {
   public:
    Reader(SortedRows const& rows, Run const& run, std::size_t buffer_bytes)
        : rows_(&rows), at_(run.begin), end_(run.end), buffer_bytes_(buffer_bytes) {}
    [[nodiscard]] NumberedLine const& line() const noexcept { return line_; }
    /// Moves to the next line.   @returns false at the run's end
    bool next() {
      if (rest_.empty() && at_ == end_) return false;
      while (rest_.size() < NumberedLine::bytes_of(rest_)) refill();
      line_ = NumberedLine::take(rest_);
      return true;
    }

   private:
    void refill() {
      auto const kept = rest_.size();
      auto const more = std::min(end_ - at_, std::max(buffer_bytes_, NumberedLine::bytes_of(rest_) - kept));
      std::string buffer(rest_);
      buffer.resize(kept + more);
      if (more == 0 || read_at(rows_->file_.get(), buffer.data() + kept, more, at_, rows_->table_) < more)
        throw DataError(rows_->table_ + ": its temporary file has lost rows; write the table again");
      at_ += more;
      buffer_ = std::move(buffer);
      rest_ = buffer_;
    }

    SortedRows const* rows_;
    std::size_t at_, end_, buffer_bytes_;
    std::string buffer_;
    std::string_view rest_;
    NumberedLine line_;
  };

  [[nodiscard]] std::vector<NumberedLine> sorted() const {
    std::vector<NumberedLine> lines;
    for (std::string_view rest = held_; !rest.empty();) lines.push_back(NumberedLine::take(rest));
    std::stable_sort(lines.begin(), lines.end(), [](auto const& a, auto const& b) { return a.sample < b.sample; });
    return lines;
  }
  void spill() {
    if (held_.empty()) return;
    auto const lines = sorted();
    std::string bytes;
    bytes.reserve(held_.size());
    for (auto const& line : lines) line.append_to(bytes);
    auto const begin = runs_.empty() ? 0 : runs_.back().end, end = begin + bytes.size();
    if (!runs_.empty() && lines.front().sample >= runs_.back().last)
      runs_.back().end = end, runs_.back().last = lines.back().sample;
    else
      runs_.push_back({begin, end, lines.back().sample});
    write(bytes, begin);
    held_.clear();
    if (held_.capacity() > 2 * part_bytes_) held_.shrink_to_fit();  // after one large addition
  }
  void merge(auto const& emit) {
    auto const each = std::clamp(part_bytes_ / runs_.size(), std::size_t{1} << 12, std::size_t{1} << 18);
    std::vector<Reader> readers;
    for (auto const& run : runs_) readers.emplace_back(*this, run, each);
    using Next = std::pair<Index, std::size_t>;  // sample and run: of duplicates, the earlier run's line is first
    std::priority_queue<Next, std::vector<Next>, std::greater<>> queue;
    auto const advance = [&](std::size_t run) {
      if (readers[run].next()) queue.emplace(readers[run].line().sample, run);
    };
    for (std::size_t run = 0; run < readers.size(); ++run) advance(run);
    while (!queue.empty()) {
      auto const run = queue.top().second;
      queue.pop();
      emit(readers[run].line());
      advance(run);
    }
  }
  void write(std::string_view bytes, std::size_t at) {
    if (file_.get() < 0) {
      std::error_code error;
      auto const real = std::filesystem::weakly_canonical(table_, error);
      auto name = (error ? table_ : real.string()) + ".XXXXXX";
      file_.reset(::mkostemp(name.data(), O_CLOEXEC));
      if (file_.get() < 0) fail("create");
      ::unlink(name.c_str());
    }
    while (!bytes.empty()) {
      auto const written = ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<::off_t>(at));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail("write");
      bytes.remove_prefix(static_cast<std::size_t>(written));
      at += static_cast<std::size_t>(written);
    }
  }
  [[noreturn]] void fail(char const* what) const {
    auto const reason = errno;
    throw DataError(table_ + ": cannot " + what + " a temporary file next to it: " + std::strerror(reason) +
                    file_remedy(reason));
  }

  std::string table_;
  std::size_t part_bytes_;
  std::string held_;
  std::vector<Run> runs_;
  FileDescriptor file_{-1};
};

}}}  // namespace lockstep::train::detail
