// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/train/detail/csv_quoted.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Line of a CSV file. Adds numbers, strings, and ranges and tuples of these, as cells.
class CsvLine {
 public:
  template <class T>
  void add(T const& value) {
    if constexpr (std::convertible_to<T const&, std::string_view>) {
      next() += csv_cell(std::string(std::string_view(value)));
    } else if constexpr (std::same_as<T, bool>) {
      add(int{value});
    } else if constexpr (std::is_arithmetic_v<T>) {
      char text[64];
      next().append(text, std::to_chars(text, text + sizeof text, value).ptr);
    } else if constexpr (requires { value.begin() != value.end(); }) {
      for (auto const& each : value) add(each);
    } else if constexpr (requires { std::tuple_size<T>::value; }) {
      std::apply([this](auto const&... each) { (this->add(each), ...); }, value);
    } else if constexpr (std::convertible_to<T const&, float>) {  // float16, bfloat16
      add(static_cast<float>(value));
    } else {
      static_assert(sizeof(T) == 0,
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

/// Rows of a table with the indices of their samples, serialized for other ranks.
class TableRows {
 public:
  explicit TableRows(std::vector<std::string> const& columns) : columns_(&columns) {}

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
                          " columns (" + header() + "); name one for each");
      add(samples[k], line.text().empty() ? "\"\"" : line.text());  // CSV readers skip empty lines
    }
  }
  [[nodiscard]] std::string const& bytes() const noexcept { return bytes_; }
  void append(std::string const& bytes) { bytes_ += bytes; }

  /// Writes the rows in the order of their samples, and only the first of duplicates.
  void write_to(auto& file) const {
    std::vector<std::pair<Index, std::string_view>> rows;
    for (std::string_view rest = bytes_; !rest.empty();) {
      Index const sample = take(rest), size = take(rest);
      rows.emplace_back(sample, rest.substr(0, static_cast<std::size_t>(size)));
      rest.remove_prefix(static_cast<std::size_t>(size));
    }
    std::stable_sort(rows.begin(), rows.end(), [](auto const& a, auto const& b) { return a.first < b.first; });
    std::string text = header() + "\n";
    for (std::size_t k = 0; k < rows.size(); ++k) {
      if (k > 0 && rows[k].first == rows[k - 1].first) continue;
      (text += rows[k].second) += '\n';
      if (text.size() < 1 << 20) continue;
      file.write(text);
      text.clear();
    }
    file.write(text);
  }

 private:
  [[nodiscard]] std::string header() const {
    CsvLine line;
    line.add(*columns_);
    return line.text();
  }
  void add(Index sample, std::string_view line) {
    for (Index const number : {sample, static_cast<Index>(line.size())})
      bytes_.append(reinterpret_cast<char const*>(&number), sizeof number);
    bytes_ += line;
  }
  [[nodiscard]] static Index take(std::string_view& rest) noexcept {
    Index number = 0;
    std::memcpy(&number, rest.data(), sizeof number);
    rest.remove_prefix(sizeof number);
    return number;
  }

  std::vector<std::string> const* columns_;
  std::string bytes_;  // for each row: sample index, length of the line, line
};

}}}  // namespace lockstep::train::detail
