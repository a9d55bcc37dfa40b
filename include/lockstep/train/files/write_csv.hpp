// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include <lockstep/train/files/csv_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Writes a CSV file of strings with a header of `columns`. The file appears complete or not at all.
/// @throws ConfigError if the number of cells in a row differs from the number of columns
/// @throws DataError if the file cannot be written
/// @source RFC 4180, with line feeds
inline void write_csv(std::string const& path, std::vector<std::string> const& columns,
                      std::vector<std::vector<std::string>> const& rows) {
  CsvFile file(path, columns);
  for (auto const& row : rows) file.add(row);
  file.commit();
}

}}}  // namespace lockstep::train
