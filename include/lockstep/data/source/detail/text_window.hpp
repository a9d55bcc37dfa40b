// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <lockstep/core/error.hpp>
#include <lockstep/core/file_descriptor.hpp>
#include <lockstep/core/out_of_memory.hpp>
#include <lockstep/data/source/detail/text_decoder.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// The current part of a text file that is read from beginning to end: it grows at its end and is dropped at its start.
/// Skips a byte order mark. Checks that the text is UTF-8, or converts it.
class TextWindow {
 public:
  /// A place that is not text in the file's encoding.
  struct Problem {
    std::size_t at = 0;  ///< offset in the text that was read, as `offset()` counts
    std::string what;
  };

  explicit TextWindow(TextDecoder decoder = TextDecoder()) : decoder_(std::move(decoder)) {}

  static constexpr std::size_t longest = std::size_t{1} << 26;  ///< limit for the bytes of a line

  /// Returns the bytes that were read and not dropped.
  [[nodiscard]] std::string_view text() const noexcept { return std::string_view(read_).substr(begin_); }
  /// Returns the offset of `text()` in the file, or in the converted text.
  [[nodiscard]] std::size_t offset() const noexcept { return offset_ - (read_.size() - begin_); }
  /// Whether the file ends with `text()`.
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  void drop(std::size_t bytes) noexcept { begin_ += bytes; }

  /// The first place that is not text in the encoding, if there is one. Text after it is of no use.
  [[nodiscard]] std::optional<Problem> const& problem() const noexcept { return problem_; }

  /// Reads 64 KiB, or as much as the window holds if that is more. Returns the new bytes; unless they are converted,
  /// their number is a multiple of 8, except at the end of the file.
  /// @throws DataError if the file cannot be read
  std::string_view grow(int file, std::string const& path);

 private:
  static constexpr std::size_t block = std::size_t{1} << 16;

  /// Reads at most `wanted` bytes to the end of read_.
  void read(int file, std::string const& path, std::size_t wanted);

  TextDecoder decoder_;
  std::string read_;
  std::size_t begin_ = 0, offset_ = 0;  // of the kept part in read_; of read_'s end in the text
  std::size_t raw_offset_ = 0;          // of the next bytes in the file
  bool ended_ = false;
  std::optional<Problem> problem_;
};

/// Returns the format of a file that is not UTF-8 text, by its first bytes, with the remedy; null: it may be text.
[[nodiscard]] char const* other_format(std::string_view head) noexcept;
/// As `other_format` of the file's beginning, but UTF-16 may be text.
/// @throws DataError that names the format
void require_readable(std::string_view head, std::string const& path);

/// Returns the number of control characters, without those of text: line ends, tabs and form feeds.
[[nodiscard]] std::size_t count_controls(std::string_view text) noexcept;
/// @param part read from byte `at` of the file
/// @throws DataError if the part is not text: by its format, a zero byte, or many control characters at the beginning
void require_text(std::string_view part, std::size_t at, std::string const& path);

struct TextLine {
  std::string_view text;  // without its end, LF or CR LF
  std::size_t bytes = 0;  // including its end
  [[nodiscard]] bool is_blank() const noexcept { return text.find_first_not_of(" \t\r\f") == std::string_view::npos; }
};

/// Returns the line at the beginning of a text, or nothing if the text holds no complete line.
[[nodiscard]] std::optional<TextLine> first_line(std::string_view text, std::size_t searched, bool ended);

/// Returns the line at the window's beginning, or nothing at the file's end. `grow` extends the window.
[[nodiscard]] std::optional<TextLine> next_line(TextWindow& window, auto&& grow) {
  for (std::size_t searched = 0;;) {
    auto const line = first_line(window.text(), searched, window.ended());
    if (line || window.ended()) return line;
    searched = window.text().size();
    grow();
  }
}

}}}  // namespace lockstep::data::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/source/detail/text_window.ipp>
#endif
