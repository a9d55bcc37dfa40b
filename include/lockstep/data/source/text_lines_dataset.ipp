// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/source/text_lines_dataset.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

LOCKSTEP_INLINE TextLinesDataset::TextLinesDataset(std::string path, TextLinesOptions options) {
  auto lines = std::make_shared<Lines>(std::move(path), options);
  auto& [file, begins, blanks] = *lines;
  with_memory_for(file.path() + " (its lines)", file.size(), [&lines = *lines] {
    auto window = lines.file.window();
    while (auto const line = detail::next_line(window, [&] { lines.file.grow(window); })) {
      if (line->is_blank()) {
        lines.blanks.push_back(lines.begins.size());
      } else {
        lines.begins.push_back(window.offset());
      }
      window.drop(line->bytes);
    }
  });
  if (begins.empty()) throw DataError(file.path() + ": holds no line; it must hold at least one sample");
  begins.shrink_to_fit();
  lines_ = std::move(lines);
}

LOCKSTEP_INLINE std::string TextLinesDataset::get(Index i) const {
  auto const& begins = lines_->begins;
  auto const place = static_cast<std::size_t>(i);
  auto const end = place + 1 < begins.size() ? begins[place + 1] : lines_->file.size();
  return std::string(detail::first_line(lines_->file.read(begins[place], end), 0, true)->text);
}

LOCKSTEP_INLINE std::string TextLinesDataset::name(Index i) const {
  auto const& blanks = lines_->blanks;
  auto const before = std::upper_bound(blanks.begin(), blanks.end(), static_cast<std::size_t>(i)) - blanks.begin();
  return lines_->file.path() + ":" + std::to_string(i + before + 1);
}

}}}  // namespace lockstep::data
