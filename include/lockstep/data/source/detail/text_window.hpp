// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <lockstep/core/error.hpp>
#include <lockstep/core/file_descriptor.hpp>
#include <lockstep/core/out_of_memory.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// The current part of a text file that is read from beginning to end: it grows at its end and is dropped at its start.
/// Skips a byte order mark.
class TextWindow {
 public:
  static constexpr std::size_t longest = std::size_t{1} << 26;  ///< limit for the bytes of a line

  /// Returns the bytes that were read and not dropped.
  [[nodiscard]] std::string_view text() const noexcept { return std::string_view(read_).substr(begin_); }
  /// Returns the offset of `text()` in the file.
  [[nodiscard]] std::size_t offset() const noexcept { return offset_ - (read_.size() - begin_); }
  /// Whether the file ends with `text()`.
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  void drop(std::size_t bytes) noexcept { begin_ += bytes; }

  /// Reads 64 KiB, or as much as the window holds if that is more. Returns the new bytes; their number is a multiple of
  /// 8, except at the end of the file.
  /// @throws DataError if the file cannot be read
  std::string_view grow(int file, std::string const& path);

 private:
  static constexpr std::size_t block = std::size_t{1} << 16;

  std::string read_;
  std::size_t begin_ = 0, offset_ = 0;  // of the kept part in read_; of read_'s end in the file
  bool ended_ = false;
};

/// Returns the format of a file that is not UTF-8 text, by its first bytes, with the remedy; null: it may be text.
[[nodiscard]] char const* other_format(std::string_view head) noexcept;

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
