// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/file_descriptor.hpp>
#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Line of a table with the index of its sample.
struct NumberedLine {
  static constexpr std::size_t header_bytes = 2 * sizeof(Index);

  Index sample = 0;
  std::string_view text;

  void append_to(std::string& bytes) const;
  /// Returns the bytes of the line at the beginning of `bytes`; more than there are if its end is missing.
  [[nodiscard]] static std::size_t bytes_of(std::string_view bytes) noexcept;
  /// Takes the line at the beginning of `bytes`, which must be complete.
  [[nodiscard]] static NumberedLine take(std::string_view& bytes) noexcept;

 private:
  [[nodiscard]] static Index number(std::string_view bytes) noexcept;
};

/// Sorts the lines of a table by their samples. Holds up to `part_bytes` in memory, and moves more to a temporary file
/// without a name in the table's folder, or in the system's folder for temporary files if the table is a pipe or a
/// device. Lines that arrive in order form one run of that file. Otherwise each part is a
/// run, and `write_to` merges the runs, with at least 4 KiB of memory for each.
class SortedRows {
 public:
  explicit SortedRows(std::string table, std::size_t part_bytes = std::size_t{4} << 20);

  /// Adds lines as NumberedLine::append_to writes them.   @throws DataError if the temporary file cannot be written
  void add(std::string_view lines);
  [[nodiscard]] std::size_t held_bytes() const noexcept { return held_.capacity(); }
  [[nodiscard]] std::size_t runs() const noexcept { return runs_.size(); }

  /// Calls visit(line) for each line in the order of their samples, and only for the first of duplicates.
  template <class Visit>
  void each(Visit const& visit) {
    visit_all(&visit, [](void const* any, NumberedLine const& line) { (*static_cast<Visit const*>(any))(line); });
  }
  /// Writes the lines in the order of their samples, and only the first of duplicates.
  void write_to(auto& file) {
    std::string text;
    each([&](NumberedLine const& line) {
      (text += line.text) += '\n';
      if (text.size() < std::size_t{1} << 20) return;
      file.write(text);
      text.clear();
    });
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
    bool next();

   private:
    void refill();

    SortedRows const* rows_;
    std::size_t at_, end_, buffer_bytes_;
    std::string buffer_;
    std::string_view rest_;
    NumberedLine line_;
  };

  void visit_all(void const* visitor, void (*visit)(void const* visitor, NumberedLine const& line));
  [[nodiscard]] std::vector<NumberedLine> sorted() const;
  void spill();
  void write(std::string_view bytes, std::size_t at);
  [[noreturn]] void fail(char const* what) const;

  std::string table_;
  std::size_t part_bytes_;
  std::string held_;
  std::vector<Run> runs_;
  FileDescriptor file_;
};

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/detail/sorted_rows.ipp>
#endif
