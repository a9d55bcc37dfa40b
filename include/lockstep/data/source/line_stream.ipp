// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/data/source/line_stream.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

LOCKSTEP_INLINE std::optional<std::string_view> LineReader::next() {
  for (; file_ < paths_->size(); close_file()) {
    try {
      if (open_.get() < 0) open_ = open_regular_file(path()).file;
      while (auto const found = line()) {
        ++number_;
        if (!found->is_blank()) return found->text;
      }
    } catch (DataError const&) {
      close_file();
      throw;
    }
  }
  return {};
}

LOCKSTEP_INLINE void LineReader::close_file() {
  file_ += step_;
  open_ = FileDescriptor();
  window_ = TextWindow(TextDecoder(encoding_));
  used_ = 0;
  number_ = 0;
}

LOCKSTEP_INLINE std::optional<TextLine> LineReader::line() {
  window_.drop(std::exchange(used_, 0));
  auto const found = next_line(window_, [&] {
    if (window_.text().size() >= TextWindow::longest)
      throw DataError(path() + ":" + std::to_string(number_ + 1) + ": the line is longer than " +
                      std::to_string(TextWindow::longest) + " bytes; give a text file");
    auto const at = window_.offset() + window_.text().size();
    require_text(window_.grow(open_.get(), path()), at, path());
    if (auto const& problem = window_.problem()) {
      auto const before = window_.text().substr(0, problem->at - window_.offset());
      throw DataError(path() + ":" + std::to_string(number_ + 1 + std::count(before.begin(), before.end(), '\n')) +
                      ": " + problem->what);
    }
  });
  if (found) used_ = found->bytes;
  return found;
}

}}}  // namespace lockstep::data::detail
