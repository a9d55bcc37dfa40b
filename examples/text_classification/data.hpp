// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/data/combine/hold_out.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/source/csv_dataset.hpp>
#include <lockstep/data/source/csv_first_row.hpp>
#include <lockstep/data/source/labelled_files_dataset.hpp>
#include <lockstep/data/text/token_cache.hpp>
#include <lockstep/data/text/word_tokenizer.hpp>

/// Sources of texts: CSV files as AG News and IMDB are published, and text files by pattern.
namespace text_classification {
namespace data = lockstep::data;
using lockstep::Index;

struct News {  // AG News: "3","Title","Description"
  int label;
  std::string title, description;
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

inline data::LabelledTexts read_news(std::string const& path, data::CsvOptions csv) {
  csv.header = data::CsvHeader::none;
  data::CsvDataset<News> const file(path, csv);
  return {file.size(), [file](Index i) -> data::LabelledText {
            auto row = file.get(i);
            if (row.label < 1 || row.label > 4)
              file.refuse(i, "label " + std::to_string(row.label) + ": must be from 1 to 4");
            (row.title += ' ') += row.description;
            return {std::move(row.title), row.label - 1};
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

/// Returns all of a dataset; sets a seeded tenth aside for evaluation if `hold_out` is true.
Texts part(data::Dataset auto const& dataset, std::vector<std::string> classes, bool hold_out, std::uint64_t seed) {
  if (!hold_out) return {data::LabelledTexts(dataset), {}, std::move(classes)};
  auto const parts = data::hold_out(dataset, 0.1, seed);
  return {data::LabelledTexts(parts.training), data::LabelledTexts(parts.evaluation), std::move(classes)};
}

inline constexpr std::string_view by_pattern = "files:";

/// Reads a CSV file of AG News or IMDB, or text files by class (`files:NAME=PATTERN,...`).
inline Texts read(std::string const& source, data::LabelledFilesOptions const& sizes, data::CsvOptions const& csv,
                  bool hold_out, std::uint64_t seed) {
  if (source.starts_with(by_pattern)) {
    data::LabelledFilesDataset const dataset(source.substr(by_pattern.size()), sizes);
    return part(dataset, dataset.classes(), hold_out, seed);
  }
  bool const reviews =
      data::csv_first_row(source, ',', csv.encoding) == std::vector<std::string>{"review", "sentiment"};
  std::vector<std::string> const sentiments{"negative", "positive"}, topics{"World", "Sports", "Business", "Sci/Tech"};
  return part(reviews ? read_reviews(source, csv) : read_news(source, csv), reviews ? sentiments : topics, hold_out,
              seed);
}

/// Texts of a machine that builds C++; missing files are ignored.
inline constexpr char texts_of_this_machine[] =
    "files:linux_uapi=/usr/include/linux/**/*.h,linux_uapi=/usr/include/asm-generic/**/*.h,"
    "libstdcxx=/usr/include/c++/**,thrust_cub=/usr/include/thrust/**,thrust_cub=/usr/include/cub/**,"
    "cmake_modules=/usr/share/cmake-*/Modules/**/*.cmake,cmake_help=/usr/share/cmake-*/Help/**/*.rst,"
    "copyright=/usr/share/doc/*/copyright";

}  // namespace text_classification
