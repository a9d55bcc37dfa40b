// SPDX-License-Identifier: Apache-2.0
// CASE vector: Lockstep: the members of a row of CsvDataset are std::string, bool, integers or floating-point numbers
// CASE optional_text: Lockstep: the members of a row of CsvDataset are std::string, bool
// CASE no_aggregate: Lockstep: the row type of CsvDataset is not an aggregate
// LINES 25
#include <array>
#include <optional>
#include <string>
#include <vector>

#include <lockstep/data/source/csv_dataset.hpp>

using namespace lockstep;

struct Row {
  int label = 0;
  std::string text;
#if defined(CASE_vector)
  std::vector<std::array<int, 2>> numbers;
#elif defined(CASE_optional_text)
  std::optional<std::string> note;
#elif defined(CASE_no_aggregate)
  explicit Row(int) {}
#endif
};

Index rows() { return data::CsvDataset<Row>{"rows.csv"}.size(); }
