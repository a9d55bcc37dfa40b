// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/source/detail/text_file.hpp>
#include <lockstep/data/source/detail/text_window.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Part of a text file that is a sample of a TextLinesDataset.
enum class TextUnit {
  line,        ///< a line that is not blank
  every_line,  ///< a line, also a blank one: for files whose lines belong together, such as texts and translations
  block,       ///< consecutive lines that are not blank: a paragraph, or a sentence with a word in each line (CoNLL)
};

/// Options of TextLinesDataset: memory, encoding and samples.
struct TextLinesOptions {
  std::uint64_t max_held_bytes =
      detail::max_held_text;  ///< larger files are not kept in memory: `get` reads their lines on demand
  /// Encoding of the file: "utf-8", which is checked; "bytes", delivered as they are; or a name that iconv of the
  /// system knows, such as "latin-1", "windows-1252" or "utf-16", whose text is converted to UTF-8.
  std::string encoding = "utf-8";
  TextUnit unit = TextUnit::line;  ///< what a sample is
};

/// Reads the lines of a text file, without blank ones by default, or the blocks of lines that blank lines separate.
/// Removes line ends (LF or CR LF) and a byte order mark. The constructor reads and indexes the file, with eight bytes
/// for each line, or sixteen for each block. Copies share index and text. Thread-safe.
/// @throws DataError from the constructor if the file cannot be read, is not text in its encoding, or has no such
/// line
/// @throws ConfigError for an unknown encoding
/// @throws DataError from `get` if the file has become shorter
class TextLinesDataset {
 public:
  /// Opens the file and indexes its lines.
  explicit TextLinesDataset(std::string path, TextLinesOptions options = {});

  /// Returns the number of lines or blocks.
  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(lines_->begins.size()); }
  /// Returns line i of [0, size()) without its end, or the lines of block i with a line feed between two of them.
  [[nodiscard]] std::string get(Index i) const;
  /// Returns the place of a line, or of the first line of a block, such as "reviews.txt:17", counted from 1 over all
  /// lines of the file.
  [[nodiscard]] std::string name(Index i) const;
  /// Rejects line i, for a reason that the text has.   @throws DataError "file:line: why"
  [[noreturn]] void refuse(Index i, std::string const& why) const { throw DataError(name(i) + ": " + why); }
  /// Checks that sample i of both files has the same line number, as a Zip of them needs. Blocks are not checked.
  /// @throws DataError if one file has a blank line, which is left out, where the other has text
  void expect_pairs(TextLinesDataset const& other) const;
  /// Returns a hash of the file's content.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return lines_->file.hash(); }

 private:
  struct Lines {
    Lines(std::string path, TextLinesOptions const& options)
        : file(std::move(path), options.max_held_bytes, options.encoding), unit(options.unit) {}

    detail::TextFile file;
    TextUnit unit;
    std::vector<std::size_t> begins;   // offset of each line or block in the file
    std::vector<std::size_t> blanks;   // lines: for each blank line, the number of lines before it that are not blank
    std::vector<std::size_t> numbers;  // blocks: number of the first line of each
  };
  std::shared_ptr<Lines const> lines_;
};

}}}  // namespace lockstep::data

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/source/text_lines_dataset.ipp>
#endif
