// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cerrno>

#include <lockstep/core/file_descriptor.hpp>
#include <lockstep/core/utf8.hpp>
#include <lockstep/data/source/detail/text_decoder.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Returns a name in lower case, with the spellings of Python that iconv does not know replaced.
LOCKSTEP_INLINE std::string encoding_name(std::string name) {
  for (auto& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  if (name == "utf8" || name == "utf-8-sig") return "utf-8";
  if (name == "latin-1") return "latin1";
  return name;
}

LOCKSTEP_INLINE Decoding decoding_of(std::string const& encoding) {
  auto const belongs = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
           c == '.' || c == ':' || c == '+';
  };
  if (encoding.empty() || !std::all_of(encoding.begin(), encoding.end(), belongs))
    throw ConfigError("encoding \"" + encoding +
                      "\": is no name of an encoding; give utf-8, bytes, or a name that `iconv -l` lists, such as "
                      "latin-1, windows-1252 or utf-16");
  auto const name = encoding_name(encoding);
  return name == "utf-8" ? Decoding::check : name == "bytes" ? Decoding::none : Decoding::convert;
}

LOCKSTEP_INLINE TextDecoder::TextDecoder(std::string const& encoding)
    : encoding_(encoding), decoding_(decoding_of(encoding)) {
  if (decoding_ != Decoding::convert) return;
  auto* const converter = ::iconv_open("UTF-8", encoding_name(encoding).c_str());
  if (converter == reinterpret_cast<::iconv_t>(-1))
    throw ConfigError("encoding \"" + encoding + "\": iconv of this system cannot convert it to UTF-8 (" +
                      system_message(errno) +
                      "); give utf-8, bytes, or a name that `iconv -l` lists, such as latin-1, windows-1252 or utf-16");
  converter_.reset(converter);
}

LOCKSTEP_INLINE std::optional<std::size_t> TextDecoder::check(std::string_view part, bool last) {
  auto const begin = begin_ - pending_.size();
  begin_ += part.size();
  if (!pending_.empty()) {
    auto const before = pending_.size();
    pending_ += part.substr(0, 4 - before);
    auto const length = utf8_length(pending_);
    bool const may_continue = !last && part.size() < 4 - before && utf8_begins(pending_);
    if (length == 0) return may_continue ? std::nullopt : std::optional(begin);
    part.remove_prefix(length - before);
    pending_.clear();
  }
  auto const valid = utf8_prefix(part);
  auto const rest = part.substr(valid);
  if (rest.empty()) return {};
  if (last || !utf8_begins(rest)) return begin_ - rest.size();
  pending_ = rest;
  return {};
}

LOCKSTEP_INLINE std::optional<std::size_t> TextDecoder::convert(std::string_view part, bool last, std::string& out) {
  bool const first = begin_ == 0;
  begin_ += part.size();
  pending_ += part;
  if (first && encoding_name(encoding_) == "utf-16" && !pending_.empty() && !pending_.starts_with("\xff\xfe") &&
      !pending_.starts_with("\xfe\xff"))
    return 0;
  auto* from = pending_.data();
  auto left = pending_.size();
  std::array<char, 16384> buffer;
  auto const append = [&](char** input, std::size_t* bytes) {
    auto* to = buffer.data();
    auto room = buffer.size();
    auto const done = ::iconv(converter_.get(), input, bytes, &to, &room);
    int const error = done == static_cast<std::size_t>(-1) ? errno : 0;
    out.append(buffer.data(), buffer.size() - room);
    return error;
  };
  std::optional<std::size_t> bad;
  while (left > 0) {
    int const error = append(&from, &left);
    if (error == 0 || error == E2BIG) continue;
    if (error != EINVAL || last) bad = begin_ - left;
    break;
  }
  if (last && !bad) append(nullptr, nullptr);  // a letter that iconv holds back because an accent may follow
  pending_.erase(0, pending_.size() - left);
  return bad;
}

LOCKSTEP_INLINE std::string TextDecoder::problem(std::size_t offset) const {
  if (decoding_ == Decoding::check)
    return "byte " + std::to_string(offset) +
           " of the file is not UTF-8; name the encoding of the file (the option encoding, --encoding of a program), "
           "such as latin-1 or windows-1252, or convert it to UTF-8 with iconv";
  return "byte " + std::to_string(offset) + " of the file is not " + encoding_ +
         (encoding_name(encoding_) == "utf-16" && offset == 0 ? " with a byte order mark; give utf-16le or utf-16be"
                                                              : "; name the encoding in which the file was written");
}

}}}  // namespace lockstep::data::detail
