// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <lockstep/core/error.hpp>
#include <lockstep/core/file_descriptor.hpp>

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
  std::string_view grow(int file, std::string const& path) {
    read_.erase(0, begin_);
    begin_ = 0;
    auto const before = read_.size(), wanted = std::max(block, before / 8 * 8);
    read_.resize(before + wanted);
    auto const got = read_at(file, read_.data() + before, wanted, offset_, path);
    read_.resize(before + got);
    if (offset_ == 0 && read_.starts_with("\xef\xbb\xbf")) begin_ = 3;
    offset_ += got;
    ended_ = got < wanted;
    return std::string_view(read_).substr(before);
  }

 private:
  static constexpr std::size_t block = std::size_t{1} << 16;

  std::string read_;
  std::size_t begin_ = 0, offset_ = 0;  // of the kept part in read_; of read_'s end in the file
  bool ended_ = false;
};

/// Returns the format of a file that is not UTF-8 text, by its first bytes, with the remedy; null: it may be text.
[[nodiscard]] inline char const* other_format(std::string_view head) noexcept {
  using namespace std::string_view_literals;
  if (head.starts_with("\x1f\x8b"sv)) return "it is compressed with gzip); decompress it first";
  if (head.starts_with("\x28\xb5\x2f\xfd"sv)) return "it is compressed with zstd); decompress it first";
  if (head.starts_with("\xfd\x37zXZ\0"sv)) return "it is compressed with xz); decompress it first";
  if (head.starts_with("BZh"sv) && head.size() >= 10 && head.substr(4).starts_with("1AY&SY"sv))
    return "it is compressed with bzip2); decompress it first";
  if (head.starts_with("PK\3\4"sv)) return "it is a zip archive); unpack it first";
  if (head.starts_with("\xff\xfe"sv) || head.starts_with("\xfe\xff"sv))
    return "it is UTF-16, by its byte order mark); convert it to UTF-8";
  return nullptr;
}

/// @param part read from byte `at` of the file
/// @throws DataError if the part is not text: by its format, a zero byte, or many control characters at the beginning
inline void require_text(std::string_view part, std::size_t at, std::string const& path) {
  auto const control = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f';
  };
  auto const head = part.substr(0, at == 0 ? 4096 : 0);
  if (auto const* const format = other_format(head.substr(0, 16))) throw DataError(path + ": is not text (" + format);
  auto const controls = static_cast<std::size_t>(std::count_if(head.begin(), head.end(), control));
  auto const zero = part.find('\0');
  if (zero == std::string_view::npos && controls * 20 <= head.size()) return;
  throw DataError(path + ": is not text (" +
                  (zero != std::string_view::npos ? "there is a zero byte at offset " + std::to_string(at + zero)
                                                  : std::to_string(controls) + " of its first " +
                                                        std::to_string(head.size()) + " bytes are control characters") +
                  "); give a text file, UTF-8 for instance");
}

struct TextLine {
  std::string_view text;  // without its end, LF or CR LF
  std::size_t bytes = 0;  // including its end
  [[nodiscard]] bool is_blank() const noexcept { return text.find_first_not_of(" \t\r\f") == std::string_view::npos; }
};

/// Returns the line at the beginning of a text, or nothing if the text holds no complete line.
[[nodiscard]] inline std::optional<TextLine> first_line(std::string_view text, std::size_t searched, bool ended) {
  auto const end = text.find('\n', searched);
  if (end == std::string_view::npos && (!ended || text.empty())) return {};
  auto line = text.substr(0, end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return TextLine{line, std::min(end, text.size() - 1) + 1};
}

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
