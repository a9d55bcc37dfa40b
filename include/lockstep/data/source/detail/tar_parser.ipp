// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/source/detail/tar_parser.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

LOCKSTEP_INLINE TarParser::TarParser(DataFile const& file) : file_(file) {
  for (;;) {
    if (at_ >= file_.size())
      file_.fail("has no end of the archive after byte " + std::to_string(at_) + ": it was cut off, write it again");
    auto const header = file_.read_text(at_, block, "a header");
    if (header.find_first_not_of('\0') == std::string::npos) {
      if (skip_zeros()) break;
      continue;  // another archive follows: concatenated archives are read as one
    }
    check_sum(header);
    // Symbolic links, devices, folders and pipes have no bytes, whatever their size says. Hard links may have (pax).
    bool const has_bytes = header[156] < '2' || header[156] > '6';
    auto const bytes = !has_bytes ? 0 : has_size_ ? next_bytes_ : number(header, 124, 12);
    auto const data = at_ + block;
    file_.require_range(data, bytes, "the member at byte " + std::to_string(at_));
    add_entry(header, data, bytes);
    at_ = data + (bytes + block - 1) / block * block;
  }
}

LOCKSTEP_INLINE bool TarParser::skip_zeros() {
  constexpr std::uint64_t part = 128 * block;
  while (at_ < file_.size()) {
    auto const bytes = file_.read_text(at_, std::min(part, file_.size() - at_), "the end of the archive");
    auto const found = bytes.find_first_not_of('\0');
    if (found != std::string::npos) {
      at_ += found / block * block;
      return false;
    }
    at_ += bytes.size();
  }
  return true;
}

LOCKSTEP_INLINE void TarParser::add_entry(std::string const& header, std::uint64_t data, std::uint64_t bytes) {
  auto const type = header[156];
  if (type == 'L' || type == 'K') {
    auto& text = type == 'L' ? next_name_ : next_link_;
    text = name_at(data, bytes);
    return;
  }
  if (type == 'S') sparse();
  if (type == 'x') {
    expect_header_bytes(bytes);
    return pax(file_.read_text(data, bytes, "a pax header"));
  }
  if (type == '0' || type == '\0') entries_.push_back({name(header), data, bytes});
  if (type == '1' || type == '2') add_link(header);
  next_name_.clear();
  next_link_.clear();
  has_size_ = false;
}

LOCKSTEP_INLINE void TarParser::expect_header_bytes(std::uint64_t bytes) const {
  if (bytes > max_header_bytes)
    file_.fail("claims a name or a pax header of " + std::to_string(bytes) + " bytes at byte " + std::to_string(at_) +
               ", and at most " + std::to_string(max_header_bytes) + " are read; the archive is damaged");
}

LOCKSTEP_INLINE std::string TarParser::name_at(std::uint64_t data, std::uint64_t bytes) const {
  expect_header_bytes(bytes);
  auto const text = file_.read_text(data, bytes, "a long name");
  return text.substr(0, text.find('\0'));
}

LOCKSTEP_INLINE void TarParser::add_link(std::string const& header) {
  bool const is_symbolic = header[156] == '2';
  if (next_link_.empty()) next_link_ = field(header, 157, 100);
  if (is_symbolic && !next_link_.starts_with('/'))
    next_link_ = (std::filesystem::path(name(header)).parent_path() / next_link_).string();
  next_link_ = normal(next_link_);
  for (; named_ < entries_.size(); ++named_) by_name_[normal(entries_[named_].name)] = named_;  // the last one counts
  if (auto const found = by_name_.find(next_link_); found != by_name_.end()) {
    auto const& target = entries_[found->second];
    return entries_.push_back({name(header), target.offset, target.bytes});
  }
  file_.fail("holds \"" + name(header) + "\" as a " + (is_symbolic ? "symbolic" : "hard") + " link to \"" + next_link_ +
             "\", which does not come before it; write the archive with " +
             (is_symbolic ? "--dereference" : "--hard-dereference"));
}

LOCKSTEP_INLINE std::string TarParser::name(std::string const& header) const {
  if (!next_name_.empty()) return next_name_;
  bool const has_prefix = header.compare(257, 6, std::string_view("ustar\0", 6)) == 0;
  auto const prefix = has_prefix ? field(header, 345, 155) : std::string();
  return prefix.empty() ? field(header, 0, 100) : prefix + "/" + field(header, 0, 100);
}

LOCKSTEP_INLINE std::string TarParser::normal(std::string const& path) {
  bool const is_normal = path.find("./") == std::string::npos && path.find("//") == std::string::npos;
  return is_normal ? path : std::filesystem::path(path).lexically_normal().string();
}

LOCKSTEP_INLINE std::string TarParser::field(std::string const& header, std::size_t at, std::size_t size) {
  auto const text = std::string_view(header).substr(at, size);
  return std::string(text.substr(0, text.find('\0')));
}

LOCKSTEP_INLINE void TarParser::pax(std::string_view text) {
  while (!text.empty() && text.front() != '\0') {
    std::size_t length = 0;
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    auto const digits = static_cast<std::size_t>(end - text.data());
    if (error != std::errc{} || length <= digits + 1 || length > text.size()) damaged("a pax header");
    auto const record = text.substr(digits + 1, length - digits - 2);
    auto const equals = record.find('=');
    if (equals == std::string_view::npos) damaged("a pax header");
    auto const key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key.starts_with("GNU.sparse.")) sparse();
    if (key == "path") next_name_ = value;
    if (key == "linkpath") next_link_ = value;
    if (key == "size") {
      auto const [stop, wrong] = std::from_chars(value.data(), value.data() + value.size(), next_bytes_);
      if (wrong != std::errc{} || stop != value.data() + value.size()) damaged("a pax header");
      has_size_ = true;
    }
    text.remove_prefix(length);
  }
}

LOCKSTEP_INLINE std::uint64_t TarParser::number(std::string const& header, std::size_t at, std::size_t size) const {
  auto const byte = [&](std::size_t i) { return static_cast<unsigned char>(header[at + i]); };
  std::uint64_t out = 0;
  if (byte(0) & 0x80) {
    for (std::size_t i = 1; i < size; ++i) {
      if (out >> 55 != 0) damaged("a size");
      out = out << 8 | byte(i);
    }
    return out;
  }
  for (std::size_t i = 0; i < size && byte(i) != 0; ++i) {
    if (byte(i) == ' ') continue;
    if (byte(i) < '0' || byte(i) > '7') damaged("a number");
    out = out << 3 | static_cast<std::uint64_t>(byte(i) - '0');
  }
  return out;
}

LOCKSTEP_INLINE void TarParser::check_sum(std::string const& header) const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < block; ++i)
    sum += i >= 148 && i < 156 ? std::uint64_t{' '} : static_cast<unsigned char>(header[i]);
  if (sum != number(header, 148, 8)) damaged("the checksum of the header");
}

LOCKSTEP_INLINE void TarParser::sparse() const {
  file_.fail("holds a sparse file at byte " + std::to_string(at_) +
             ", which cannot be read; write it without --sparse");
}

LOCKSTEP_INLINE void TarParser::damaged(char const* what) const {
  file_.fail("cannot be read as tar: " + std::string(what) + " at byte " + std::to_string(at_) +
             " is damaged; if the archive is compressed, decompress it first");
}

}}}  // namespace lockstep::data::detail
