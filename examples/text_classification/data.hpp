// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/combine/hold_out.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/source/csv_dataset.hpp>
#include <lockstep/data/source/csv_first_row.hpp>
#include <lockstep/data/source/labelled_files_dataset.hpp>
#include <lockstep/data/text/token_cache.hpp>
#include <lockstep/data/text/word_tokenizer.hpp>

#include "table.hpp"

/// Sources of texts: tables with columns for text and label, CSV files as AG News and IMDB are published, and text
/// files by pattern.
namespace text_classification {

struct News {  // AG News: "3","Title","Description"
  std::string label, title, description;
};
struct Review {  // IMDB: review,sentiment
  std::string review, sentiment;
};

struct Texts {
  data::LabelledTexts training, evaluation;
  std::vector<std::string> classes;
};

/// Splits text into words without punctuation, which doubles the length of source files and carries little information.
struct Words {
  void operator()(std::string_view text, auto&& each) const {
    data::WordTokenizer{}(text, [&](auto token) {
      if (token.size() > 1 || static_cast<unsigned char>(token[0]) >= '0') each(token);
    });
  }
};

inline bool is_number(std::string_view text) {
  text = text.substr(std::min(text.find_first_not_of(' '), text.size()));
  text = text.substr(0, text.find_last_not_of(' ') + 1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

inline data::LabelledTexts read_news(std::string const& path, data::CsvOptions const& csv) {
  data::CsvDataset<News> const file(path, csv);
  return {file.size(), [file](Index i) -> data::LabelledText {
            auto row = file.get(i);
            auto const at = row.label.find_first_of("1234");
            if (!is_number(row.label) || at != row.label.find_first_of("0123456789") ||
                row.label.find_last_of("0123456789") != at)
              file.refuse(
                  i, "label " + (is_number(row.label) ? row.label : '"' + row.label + '"') + ": must be from 1 to 4");
            (row.title += ' ') += row.description;
            return {std::move(row.title), row.label[at] - '1'};
          }};
}

inline data::LabelledTexts read_reviews(std::string const& path, data::CsvOptions csv) {
  csv.header = data::CsvHeader::first_line;
  data::CsvDataset<Review> const file(path, csv);
  return {file.size(), [file](Index i) -> data::LabelledText {
            auto const row = file.get(i);
            if (row.sentiment != "positive" && row.sentiment != "negative")
              file.refuse(i, "sentiment \"" + row.sentiment + "\": must be positive or negative");
            return {row.review, row.sentiment == "positive"};
          }};
}

inline constexpr double held_out_share = 0.1;

/// Returns all of a dataset; sets a seeded tenth aside for evaluation if `hold_out` is true.
Texts part(data::Dataset auto const& dataset, std::vector<std::string> classes, bool hold_out, std::uint64_t seed) {
  if (!hold_out) return {data::LabelledTexts(dataset), {}, std::move(classes)};
  auto const parts = data::hold_out(dataset, held_out_share, seed);
  return {data::LabelledTexts(parts.training), data::LabelledTexts(parts.evaluation), std::move(classes)};
}

/// Returns the rows of a table that `part` holds out, ascending.
inline std::vector<Index> rows_held_out(Index rows, std::uint64_t seed) {
  std::vector<Index> all(static_cast<std::size_t>(rows));
  std::iota(all.begin(), all.end(), Index{0});
  auto const held_out = data::hold_out(data::InMemoryDataset{std::move(all)}, held_out_share, seed).evaluation;
  std::vector<Index> out;
  for (Index i = 0; i < held_out.size(); ++i) out.push_back(held_out.original(i));
  return out;
}

inline constexpr std::string_view by_pattern = "files:";

/// Options of `read`.
struct ReadOptions {
  Columns columns;  ///< of a table
  data::LabelledFilesOptions sizes;
  data::CsvOptions csv;
  std::uint64_t seed = 1;  ///< that chooses the texts held out
  Labels labels = Labels::needed;
};

/// Reads a table, a CSV file of AG News or IMDB, or text files by class (`files:NAME=PATTERN,...`).
/// @param known classes of the training data, for evaluation data; null: a table has those of its own labels
inline Texts read(std::string const& source, ReadOptions options, bool hold_out,
                  std::vector<std::string> const* known = nullptr) {
  if (source.starts_with(by_pattern)) {
    data::LabelledFilesDataset const dataset(source.substr(by_pattern.size()), options.sizes);
    return part(dataset, dataset.classes(), hold_out, options.seed);
  }
  auto& csv = options.csv;
  auto const table = [&](Table const& rows) {
    auto classes = known ? *known : classes_of(rows, source, options.columns);
    auto const texts = labelled(rows, classes);
    return part(texts, std::move(classes), hold_out, options.seed);
  };
  if (is_json_lines(source)) return table(open_json_lines(source, options.columns, csv, options.labels));
  csv.separator = separator_of(source);
  auto const first = data::csv_first_row(source, csv.separator, csv.encoding);
  auto const has = [&](std::string const& name) { return std::find(first.begin(), first.end(), name) != first.end(); };
  if (options.columns.given() ||
      (has(options.columns.text_name()) && (has(options.columns.label_name()) || options.labels == Labels::optional)))
    return table(open_csv(source, options.columns, first, csv, options.labels));
  if (first == std::vector<std::string>{"review", "sentiment"})
    return part(read_reviews(source, csv), {"negative", "positive"}, hold_out, options.seed);
  bool const named = first == std::vector<std::string>{"Class Index", "Title", "Description"};
  if (!named && (first.size() != 3 || !is_number(first[0]))) {
    std::string names;
    for (auto const& each : first) names += (names.empty() ? "" : ", ") + data::detail::excerpt(each);
    throw DataError(source + ":1: has the columns " + names +
                    ", and neither text and label nor those of AG News (class, title, description) or IMDB (review, "
                    "sentiment); name them with --text-column and --label-column, after adding a line of names if "
                    "there is none");
  }
  csv.header = named ? data::CsvHeader::first_line : data::CsvHeader::none;
  return part(read_news(source, csv), {"World", "Sports", "Business", "Sci/Tech"}, hold_out, options.seed);
}

/// Texts of a machine that builds C++; missing files are ignored.
inline constexpr char texts_of_this_machine[] =
    "files:linux_uapi=/usr/include/linux/**/*.h,linux_uapi=/usr/include/asm-generic/**/*.h,"
    "libstdcxx=/usr/include/c++/**,thrust_cub=/usr/include/thrust/**,thrust_cub=/usr/include/cub/**,"
    "cmake_modules=/usr/share/cmake-*/Modules/**/*.cmake,cmake_help=/usr/share/cmake-*/Help/**/*.rst,"
    "copyright=/usr/share/doc/*/copyright";

}  // namespace text_classification
