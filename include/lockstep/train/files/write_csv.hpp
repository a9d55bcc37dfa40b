// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/train/detail/csv_quoted.hpp>
#include <lockstep/train/files/atomic_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Writes a CSV file of strings with a header of `columns`. The file appears complete or not at all.
/// @throws ConfigError if the number of cells in a row differs from the number of columns
/// @throws DataError if the file cannot be written
/// @source RFC 4180, with line feeds
inline void write_csv(std::string const& path, std::vector<std::string> const& columns,
                      std::vector<std::vector<std::string>> const& rows) {
  AtomicFile file(path);
  auto const write = [&](std::vector<std::string> const& cells) {
    if (cells.size() != columns.size())
      throw ConfigError(path + ": a row has " + std::to_string(cells.size()) + " cells, and there are " +
                        std::to_string(columns.size()) + " columns; give one for each");
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) (line += i == 0 ? "" : ",") += detail::csv_cell(cells[i]);
    file.write((line.empty() ? "\"\"" : line) + "\n");
  };
  write(columns);
  for (auto const& row : rows) write(row);
  file.commit();
}

}}}  // namespace lockstep::train
