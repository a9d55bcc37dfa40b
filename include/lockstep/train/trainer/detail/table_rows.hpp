// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/data/split.hpp>
#include <lockstep/parallel/session.hpp>
#include <lockstep/train/detail/csv_quoted.hpp>
#include <lockstep/train/detail/row_parts.hpp>
#include <lockstep/train/detail/sorted_rows.hpp>
#include <lockstep/train/files/atomic_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Line of a CSV file. Adds numbers, strings, and ranges and tuples of these, as cells.
class CsvLine {
 public:
  template <class Value>
  void add(Value const& value) {
    if constexpr (std::convertible_to<Value const&, std::string_view>) {
      next() += csv_cell(std::string(std::string_view(value)));
    } else if constexpr (std::same_as<Value, bool>) {
      add(int{value});
    } else if constexpr (std::is_arithmetic_v<Value>) {
      next() += shortest(value);
    } else if constexpr (requires { value.begin() != value.end(); }) {
      for (auto const& each : value) add(each);
    } else if constexpr (requires { std::tuple_size<Value>::value; }) {
      std::apply([this](auto const&... each) { (this->add(each), ...); }, value);
    } else if constexpr (std::convertible_to<Value const&, float>) {  // float16, bfloat16
      add(static_cast<float>(value));
    } else {
      static_assert(sizeof(Value) == 0,
                    "Lockstep: a row of a table of predictions is a number, a string, or a std::tuple, std::array or "
                    "std::vector of these; see docs/how-to/predict.md");
    }
  }
  [[nodiscard]] std::string const& text() const noexcept { return text_; }
  [[nodiscard]] std::size_t cells() const noexcept { return cells_; }

 private:
  std::string& next() {
    if (cells_++ > 0) text_ += ',';
    return text_;
  }

  std::string text_;
  std::size_t cells_ = 0;
};

/// Rows of a table with the indices of their samples, serialized for SortedRows and other ranks.
class TableRows {
 public:
  explicit TableRows(std::vector<std::string> const& columns) : columns_(&columns) {}

  [[nodiscard]] static std::string header(std::vector<std::string> const& columns);
  /// Adds the cells of row(prediction, batch, k) for each row of a batch.
  /// @throws ConfigError if the number of cells differs from the number of columns
  template <class Prediction, class Batch, class Row>
  void add(std::span<Index const> samples, Prediction const& prediction, Batch const& batch, Row const& row) {
    for (std::size_t k = 0; k < samples.size(); ++k) {
      CsvLine line;
      line.add(row(prediction, batch, static_cast<Index>(k)));
      if (line.cells() != columns_->size())
        throw ConfigError("write_predictions: the row of sample " + std::to_string(samples[k]) + " has " +
                          std::to_string(line.cells()) + " cells, and there are " + std::to_string(columns_->size()) +
                          " columns (" + header(*columns_) + "); name one for each");
      std::string_view text = line.text();
      if (text.empty()) text = "\"\"";  // CSV readers skip empty lines
      NumberedLine{samples[k], text}.append_to(bytes_);
    }
  }
  /// Returns the rows and forgets them.
  [[nodiscard]] std::string take() noexcept;

 private:
  std::vector<std::string> const* columns_;
  std::string bytes_;
};

/// A CSV file with the rows of all ranks, which the first rank writes.
class PredictionTable {
 public:
  /// The arguments must outlive this object.   @throws DataError, on the first rank, if the file cannot be written
  /// @param stop ends a wait for the reader of a pipe
  PredictionTable(std::string const& path, std::vector<std::string> const& columns, parallel::AnySession& session,
                  data::Split const& split, std::stop_token stop = {});

  /// Returns the rows that a shard adds to in this step.
  [[nodiscard]] TableRows& rows(std::size_t shard) noexcept { return rows_[shard]; }
  /// Gathers the rows of all ranks if enough have been added, or after the last step.   @collective
  void end_step(bool last);
  /// Writes all rows, in the order of their samples.
  void commit();

 private:
  std::vector<std::string> const& columns_;
  parallel::AnySession& session_;
  int rank_, ranks_;
  std::optional<AtomicFile> file_;
  SortedRows table_;
  std::vector<TableRows> rows_;  // by shard
  RowParts parts_;
};

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/trainer/detail/table_rows.ipp>
#endif
