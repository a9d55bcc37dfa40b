// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <utility>

#include <lockstep/core/json.hpp>
#include <lockstep/data/source/text_lines_dataset.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Reads JSON lines: one value per line of a file; skips empty lines. `get` parses a line. data::Transform makes
/// samples of values: `Transform{JsonLinesDataset{path}, [](json::Value const& v) { ... }}`.
/// Reads half of a surrogate pair, which other programs leave where they cut a text, as U+FFFD. Refuses NaN and
/// Infinity, as Python's json.dumps writes them by default, with the line.
/// @throws DataError from the constructor if the file cannot be read, is not text or has no line
/// @throws DataError from `get` if a line is not JSON; names file, line and column
class JsonLinesDataset {
 public:
  /// Opens the file and indexes its lines.
  explicit JsonLinesDataset(std::string path, TextLinesOptions options = {})
      : lines_(std::move(path), std::move(options)) {}

  /// Returns the number of lines that are not empty.
  [[nodiscard]] Index size() const noexcept { return lines_.size(); }
  /// Parses line i of [0, size()).
  [[nodiscard]] json::Value get(Index i) const {
    return json::parse(lines_.get(i), lines_.name(i), json::LoneSurrogates::replace);
  }
  /// Returns the place of a line, such as "reviews.jsonl:17", counted from 1.
  [[nodiscard]] std::string name(Index i) const { return lines_.name(i); }
  /// Rejects line i for a reason that JSON cannot express, such as a missing member.
  /// @throws DataError "file:line: why"
  [[noreturn]] void refuse(Index i, std::string const& why) const { lines_.refuse(i, why); }
  /// Returns a hash of the file, as TextLinesDataset.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return lines_.fingerprint(); }

 private:
  TextLinesDataset lines_;
};

}}}  // namespace lockstep::data
