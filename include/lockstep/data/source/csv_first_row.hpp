// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include <lockstep/data/source/detail/csv_table.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data {

/// The fields of a CSV file's first row, be it names or a sample: to find out which of several layouts a file has.
/// @throws DataError as CsvDataset does, of the first row only
[[nodiscard]] inline std::vector<std::string> csv_first_row(std::string const& path, char separator = ',') {
  return detail::texts_of(detail::CsvTable(path, separator).row(0));
}

}  // namespace lockstep::inline LOCKSTEP_ABI::data
