// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/core/nearest.hpp>
#include <lockstep/data/source/csv_dataset.hpp>
#include <lockstep/data/source/json_lines_dataset.hpp>
#include <lockstep/data/text/token_cache.hpp>

/// Tables of texts with labels of any name: CSV, TSV, JSON lines.
namespace text_classification {
namespace data = lockstep::data;
using lockstep::ConfigError, lockstep::DataError, lockstep::Index;

/// Names of the columns of a table.
struct Columns {
  std::string text, label;  ///< empty: "text" and "label"
  [[nodiscard]] bool given() const noexcept { return !text.empty() || !label.empty(); }
  [[nodiscard]] std::string text_name() const { return text.empty() ? "text" : text; }
  [[nodiscard]] std::string label_name() const { return label.empty() ? "label" : label; }
};

struct TableRow {
  std::string text, label;
};
struct TextRow {
  std::string text;
};

/// Rows of a file. Thread-safe.
struct Table {
  Index size;
  std::function<TableRow(Index)> get;
  std::function<void(Index, std::string const&)> refuse;  ///< throws a DataError that names the line of row i
  bool has_labels = true;
};

/// Whether a table may lack the column of labels, to write predictions only.
enum class Labels { needed, optional };

inline bool is_json_lines(std::string_view path) { return path.ends_with(".jsonl") || path.ends_with(".ndjson"); }
inline char separator_of(std::string_view path) { return path.ends_with(".tsv") ? '\t' : ','; }

/// Opens a CSV file by the names of its first row.
inline Table open_csv(std::string const& path, Columns const& columns, std::vector<std::string> const& names,
                      data::CsvOptions csv, Labels labels) {
  auto const has = [&](std::string const& name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  auto const need = [&](std::string const& name, char const* flag) {
    if (!has(name))
      throw DataError(path + ":1: no column is named \"" + name + "\"; the nearest is \"" +
                      lockstep::nearest(name, names) + "\": name the column with " + flag);
  };
  need(columns.text_name(), "--text-column");
  if (labels == Labels::optional && !has(columns.label_name())) {
    csv.columns = {columns.text_name()};
    data::CsvDataset<TextRow> const rows(path, csv);
    return {rows.size(),
            [rows](Index i) {
              return TableRow{rows.get(i).text, {}};
            },
            [rows](Index i, std::string const& why) { rows.refuse(i, why); }, false};
  }
  need(columns.label_name(), "--label-column");
  csv.columns = {columns.text_name(), columns.label_name()};
  data::CsvDataset<TableRow> const rows(path, csv);
  return {rows.size(), [rows](Index i) { return rows.get(i); },
          [rows](Index i, std::string const& why) { rows.refuse(i, why); }};
}

/// Opens JSON lines: an object for each text. A label may be a string, a whole number or a bool.
inline Table open_json_lines(std::string const& path, Columns const& columns, data::CsvOptions const& csv,
                             Labels labels) {
  data::JsonLinesDataset const rows(path, {.max_held_bytes = csv.max_held_bytes, .encoding = csv.encoding});
  bool const has_labels =
      labels == Labels::needed || (rows.get(0).is<lockstep::json::Object>() && rows.get(0).find(columns.label_name()));
  auto const get = [rows, has_labels, text = columns.text_name(), label = columns.label_name()](Index i) {
    auto const row = rows.get(i);
    if (!row.is<lockstep::json::Object>()) rows.refuse(i, std::string("is no object, but ") + row.type());
    auto const member = [&](std::string const& name, char const* flag) {
      auto const* const found = row.find(name);
      if (!found) rows.refuse(i, "has no \"" + name + "\"; add it, or name another member with " + flag);
      if (found->is<std::string>()) return found->string();
      if (found->is<std::int64_t>()) return std::to_string(found->integer());
      if (!found->is<bool>()) rows.refuse(i, "\"" + name + "\" is " + found->type() + "; it must be a string");
      return std::string(found->boolean() ? "true" : "false");
    };
    return TableRow{member(text, "--text-column"), has_labels ? member(label, "--label-column") : ""};
  };
  return {rows.size(), get, [rows](Index i, std::string const& why) { rows.refuse(i, why); }, has_labels};
}

/// Sorts whole numbers by value, and other labels by their bytes.
inline void sort_labels(std::vector<std::string>& labels) {
  auto const value = [](std::string const& label) {
    std::int64_t number = 0;
    auto const [end, error] = std::from_chars(label.data(), label.data() + label.size(), number);
    return std::pair{error == std::errc() && end == label.data() + label.size(), number};
  };
  if (std::all_of(labels.begin(), labels.end(), [&](auto const& label) { return value(label).first; }))
    std::stable_sort(labels.begin(), labels.end(), [&](auto& a, auto& b) { return value(a).second < value(b).second; });
}

/// Returns the labels of a table as classes.
/// @throws DataError for an empty label, fewer than two classes, or labels that never repeat
inline std::vector<std::string> classes_of(Table const& table, std::string const& path, Columns const& columns) {
  std::map<std::string, Index> counts;
  for (Index i = 0; i < table.size; ++i) {
    auto const label = table.get(i).label;
    if (label.find_first_not_of(' ') == std::string::npos)
      table.refuse(i, "the label is empty; give one, or remove the row");
    if (label.find_first_of("\r\n") != std::string::npos) table.refuse(i, "the label has a line break; remove it");
    ++counts[label];
  }
  auto const remedy = "; --label-column names the column of the labels, now \"" + columns.label_name() + "\"";
  if (counts.size() == 1)
    throw DataError(path + ": each label is \"" + counts.begin()->first + "\", and training needs two classes" +
                    remedy);
  constexpr std::size_t enough = 8;
  if (std::ssize(counts) == table.size && counts.size() >= enough)
    throw DataError(path + ": each of the " + std::to_string(counts.size()) + " labels occurs once" + remedy);
  std::vector<std::string> classes;
  classes.reserve(counts.size());
  for (auto const& each : counts) classes.push_back(each.first);
  sort_labels(classes);
  return classes;
}

/// Returns the texts of a table with the places of their labels in `classes`, or -1 if it has no labels.
inline data::LabelledTexts labelled(Table const& table, std::vector<std::string> const& classes) {
  auto const places = std::make_shared<std::map<std::string, std::int32_t>>();
  for (std::size_t i = 0; i < classes.size(); ++i) places->emplace(classes[i], static_cast<std::int32_t>(i));
  return {table.size, [table, places, classes](Index i) -> data::LabelledText {
            auto row = table.get(i);
            if (!table.has_labels) return {std::move(row.text), -1};
            auto const at = places->find(row.label);
            if (at == places->end())
              table.refuse(i, "label \"" + row.label + "\": is not a class of the training data; the nearest is \"" +
                                  lockstep::nearest(row.label, classes) + "\": correct it, or remove the row");
            return {std::move(row.text), at->second};
          }};
}

}  // namespace text_classification
