// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/train/detail/csv_quoted.hpp>
#include <lockstep/train/files/atomic_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// CSV file of strings with a header of `columns`, written row by row. It appears complete, when `commit` is called, or
/// not at all.
/// @source RFC 4180, with line feeds
class [[nodiscard]] CsvFile {
 public:
  /// @throws DataError if the file cannot be written
  CsvFile(std::string path, std::vector<std::string> const& columns)
      : path_(std::move(path)), columns_(columns.size()), file_(path_) {
    add(columns);
  }
  /// Writes a row.
  /// @throws ConfigError if the number of cells differs from the number of columns
  /// @throws DataError if the file cannot be written
  void add(std::vector<std::string> const& cells) {
    if (cells.size() != columns_)
      throw ConfigError(path_ + ": a row has " + std::to_string(cells.size()) + " cells, and there are " +
                        std::to_string(columns_) + " columns; give one for each");
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) (line += i == 0 ? "" : ",") += detail::csv_cell(cells[i]);
    file_.write((line.empty() ? "\"\"" : line) + "\n");
  }
  /// Puts the file in its place. Without it, the destructor leaves no file.   @throws DataError if that fails
  void commit() { file_.commit(); }

 private:
  std::string path_;
  std::size_t columns_;
  AtomicFile file_;
};

}}}  // namespace lockstep::train
