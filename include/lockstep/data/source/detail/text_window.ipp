// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/source/detail/text_window.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

LOCKSTEP_INLINE std::string_view TextWindow::grow(int file, std::string const& path) {
  read_.erase(0, begin_);
  begin_ = 0;
  auto const before = read_.size();
  bool const first = raw_offset_ == 0;
  read(file, path, std::max(block, before / 8 * 8));
  if (first && read_.starts_with("\xef\xbb\xbf")) begin_ = 3;
  offset_ += read_.size() - before;
  return std::string_view(read_).substr(before);
}

LOCKSTEP_INLINE void TextWindow::read(int file, std::string const& path, std::size_t wanted) {
  auto const before = read_.size();
  auto const begin = raw_offset_;
  auto const read_to = [&](std::string& text, std::size_t at) {
    with_memory_for(path, at + wanted, [&] { text.resize(at + wanted); });
    auto const got = read_at(file, text.data() + at, wanted, raw_offset_, path);
    text.resize(at + got);
    raw_offset_ += got;
    ended_ = got < wanted;
  };
  std::optional<std::size_t> bad;
  if (decoder_.decoding() == Decoding::convert) {
    std::string raw;
    read_to(raw, 0);
    if (begin == 0) require_readable(std::string_view(raw).substr(0, 16), path);
    with_memory_for(path, before + 3 * raw.size(), [&] { bad = decoder_.convert(raw, ended_, read_); });
    if (bad && !problem_) problem_ = Problem{offset_ + read_.size() - before, decoder_.problem(*bad)};
    return;
  }
  read_to(read_, before);
  if (decoder_.decoding() == Decoding::check) bad = decoder_.check(std::string_view(read_).substr(before), ended_);
  if (bad && !problem_) problem_ = Problem{*bad, decoder_.problem(*bad)};
}

LOCKSTEP_INLINE char const* other_format(std::string_view head) noexcept {
  using namespace std::string_view_literals;
  if (head.starts_with("\x1f\x8b"sv)) return "it is compressed with gzip); decompress it first";
  if (head.starts_with("\x28\xb5\x2f\xfd"sv)) return "it is compressed with zstd); decompress it first";
  if (head.starts_with("\xfd\x37zXZ\0"sv)) return "it is compressed with xz); decompress it first";
  if (head.starts_with("BZh"sv) && head.size() >= 10 && head.substr(4).starts_with("1AY&SY"sv))
    return "it is compressed with bzip2); decompress it first";
  if (head.starts_with("PK\3\4"sv)) return "it is a zip archive); unpack it first";
  if (head.starts_with("\xff\xfe"sv) || head.starts_with("\xfe\xff"sv))
    return "it is UTF-16, by its byte order mark); convert it to UTF-8, or name the encoding utf-16";
  return nullptr;
}

LOCKSTEP_INLINE void require_readable(std::string_view head, std::string const& path) {
  if (head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff")) return;
  if (auto const* const format = other_format(head)) throw DataError(path + ": is not text (" + format);
}

LOCKSTEP_INLINE std::size_t count_controls(std::string_view text) noexcept {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f';
  }));
}

LOCKSTEP_INLINE void require_text(std::string_view part, std::size_t at, std::string const& path) {
  auto const head = part.substr(0, at == 0 ? 4096 : 0);
  if (auto const* const format = other_format(head.substr(0, 16))) throw DataError(path + ": is not text (" + format);
  auto const controls = count_controls(head);
  auto const zero = part.find('\0');
  if (zero == std::string_view::npos && controls * 20 <= head.size()) return;
  throw DataError(path + ": is not text (" +
                  (zero != std::string_view::npos ? "there is a zero byte at offset " + std::to_string(at + zero)
                                                  : std::to_string(controls) + " of its first " +
                                                        std::to_string(head.size()) + " bytes are control characters") +
                  "); give a text file, UTF-8 for instance");
}

LOCKSTEP_INLINE std::optional<TextLine> first_line(std::string_view text, std::size_t searched, bool ended) {
  auto const end = text.find('\n', searched);
  if (end == std::string_view::npos && (!ended || text.empty())) return {};
  auto line = text.substr(0, end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return TextLine{line, std::min(end, text.size() - 1) + 1};
}

}}}  // namespace lockstep::data::detail
