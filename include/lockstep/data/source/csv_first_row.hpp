// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include <lockstep/data/source/detail/csv_table.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Returns the fields of a CSV file's first row that is no comment, whether names or a sample, to recognize one of
/// several layouts.
/// @throws DataError as CsvDataset, for the first row only
[[nodiscard]] inline std::vector<std::string> csv_first_row(std::string const& path, char separator = ',',
                                                            std::string const& encoding = "utf-8",
                                                            char comment = '\0') {
  return detail::texts_of(detail::CsvTable(detail::CsvSource{path, separator, encoding, comment}).row(0));
}

}}}  // namespace lockstep::data
