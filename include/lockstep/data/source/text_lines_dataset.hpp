// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/data/dataset.hpp>
#include <lockstep/data/detail/content_hash.hpp>
#include <lockstep/data/source/detail/text_file.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data {

/// The lines of a text file that hold more than blanks, without their ends (LF or CR LF); a byte order mark is skipped.
/// The file is read and indexed at construction. A line is a view of text that all copies of the dataset share.
/// @throws DataError at construction when the file cannot be read, is not text or has no such line
class TextLinesDataset {
 public:
  explicit TextLinesDataset(std::string path) {
    auto text = std::make_shared<Text>();
    text->path = std::move(path);
    text->content = detail::read_text_file(text->path);
    std::string_view const all = text->content, mark = "\xef\xbb\xbf";
    std::size_t at = all.starts_with(mark) ? mark.size() : 0;
    for (Index number = 1; at < all.size(); ++number) {
      auto const end = std::min(all.find('\n', at), all.size());
      auto line = all.substr(at, end - at);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.find_first_not_of(" \t\r\f") != std::string_view::npos) {
        text->lines.push_back(line);
        text->numbers.push_back(number);
      }
      at = end + 1;
    }
    if (text->lines.empty()) throw DataError(text->path + ": holds no line; it must hold at least one sample");
    text->hash = detail::content_hash(text->content);
    text_ = std::move(text);
  }

  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(text_->lines.size()); }
  [[nodiscard]] std::string_view get(Index i) const noexcept { return text_->lines[static_cast<std::size_t>(i)]; }
  /// "reviews.txt:17", counted from 1 over all lines of the file.
  [[nodiscard]] std::string name(Index i) const {
    return text_->path + ":" + std::to_string(text_->numbers[static_cast<std::size_t>(i)]);
  }
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return text_->hash; }

 private:
  struct Text {
    std::string path, content;
    std::uint64_t hash = 0;  // of the content
    std::vector<std::string_view> lines;
    std::vector<Index> numbers;  // of the lines, from 1
  };
  std::shared_ptr<Text const> text_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::data
