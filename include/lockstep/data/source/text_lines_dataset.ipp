// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/out_of_memory.hpp>
#include <lockstep/data/source/text_lines_dataset.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

LOCKSTEP_INLINE TextLinesDataset::TextLinesDataset(std::string path, TextLinesOptions options) {
  auto lines = std::make_shared<Lines>(std::move(path), options);
  with_memory_for(lines->file.path() + " (its lines)", lines->file.size(), [&lines = *lines] {
    auto window = lines.file.window();
    bool in_block = false;
    std::size_t number = 0;
    while (auto const line = detail::next_line(window, [&] { lines.file.grow(window); })) {
      ++number;
      bool const is_blank = line->is_blank();
      if (lines.unit == TextUnit::every_line) {
        lines.begins.push_back(window.offset());
      } else if (lines.unit == TextUnit::line) {
        is_blank ? lines.blanks.push_back(lines.begins.size()) : lines.begins.push_back(window.offset());
      } else if (!is_blank && !in_block) {
        lines.begins.push_back(window.offset());
        lines.numbers.push_back(number);
      }
      in_block = !is_blank;
      window.drop(line->bytes);
    }
  });
  if (lines->begins.empty()) throw DataError(lines->file.path() + ": holds no line; it must hold at least one sample");
  lines->begins.shrink_to_fit();
  lines->numbers.shrink_to_fit();
  lines_ = std::move(lines);
}

LOCKSTEP_INLINE std::string TextLinesDataset::get(Index i) const {
  auto const& begins = lines_->begins;
  auto const place = static_cast<std::size_t>(i);
  auto const end = place + 1 < begins.size() ? begins[place + 1] : lines_->file.size();
  auto rest = lines_->file.read(begins[place], end);
  auto line = detail::first_line(rest, 0, true);
  std::string text(line->text);
  if (lines_->unit != TextUnit::block) return text;
  for (;;) {
    rest.remove_prefix(line->bytes);
    line = detail::first_line(rest, 0, true);
    if (!line || line->is_blank()) return text;
    (text += '\n') += line->text;
  }
}

LOCKSTEP_INLINE std::string TextLinesDataset::name(Index i) const {
  if (lines_->unit == TextUnit::block)
    return lines_->file.path() + ":" + std::to_string(lines_->numbers[static_cast<std::size_t>(i)]);
  auto const& blanks = lines_->blanks;
  auto const before = std::upper_bound(blanks.begin(), blanks.end(), static_cast<std::size_t>(i)) - blanks.begin();
  return lines_->file.path() + ":" + std::to_string(i + before + 1);
}

LOCKSTEP_INLINE void TextLinesDataset::expect_pairs(TextLinesDataset const& other) const {
  if (lines_->unit == TextUnit::block || other.lines_->unit == TextUnit::block) return;
  auto const &own = lines_->blanks, &theirs = other.lines_->blanks;
  auto const [a, b] = std::mismatch(own.begin(), own.end(), theirs.begin(), theirs.end());
  if (a == own.end() && b == theirs.end()) return;
  bool const is_own = b == theirs.end() || (a != own.end() && *a < *b);
  auto const before = is_own ? *a : *b;                                       // lines of both files that are paired
  if (static_cast<Index>(before) >= (is_own ? other : *this).size()) return;  // the other file has no more lines
  auto const line = ":" + std::to_string(before + static_cast<std::size_t>(a - own.begin()) + 1);
  throw DataError((is_own ? *this : other).lines_->file.path() + line + ": is blank and left out, but " +
                  (is_own ? other : *this).lines_->file.path() + line +
                  " is not, so the lines behind it would have the wrong partners; read both files with the unit "
                  "data::TextUnit::every_line, or remove this line from both");
}

}}}  // namespace lockstep::data
