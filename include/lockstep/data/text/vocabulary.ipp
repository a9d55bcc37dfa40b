// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/text/vocabulary.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

LOCKSTEP_INLINE Vocabulary::Vocabulary(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {
  ids_.reserve(tokens_.size());
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    auto const id = static_cast<std::int32_t>(i) + first_token;
    auto const [found, added] = ids_.emplace(tokens_[i], id);
    if (!added || tokens_[i].empty()) {
      throw DataError("Vocabulary: line " + std::to_string(i + 1) +
                      (added ? " holds no token"
                             : " repeats the token of line " + std::to_string(found->second - first_token + 1)) +
                      "; each line must hold one token that no other line holds");
    }
  }
}

LOCKSTEP_INLINE std::int32_t Vocabulary::id(std::string_view token) const noexcept {
  auto const found = ids_.find(token);
  return found == ids_.end() ? unknown : found->second;
}

LOCKSTEP_INLINE std::string_view Vocabulary::token(std::int32_t id) const noexcept {
  if (id < first_token) return id == padding ? "<padding>" : "<unknown>";
  return tokens_[static_cast<std::size_t>(id - first_token)];
}

LOCKSTEP_INLINE std::string Vocabulary::to_text() const {
  std::string out;
  for (auto const& token : tokens_) {
    for (std::string_view rest = token; !rest.empty();) {
      auto const length = utf8_length(rest);
      char const c = rest.front();
      if (length == 0) {
        constexpr std::string_view digits = "0123456789abcdef";
        auto const byte = static_cast<unsigned char>(c);
        out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
      } else if (c == '\\' || c == '\n' || c == '\r') {
        out += '\\';
        out += c == '\n' ? 'n' : c == '\r' ? 'r' : '\\';
      } else {
        out += rest.substr(0, length);
      }
      rest.remove_prefix(std::max<std::size_t>(length, 1));
    }
    out += '\n';
  }
  return out;
}

LOCKSTEP_INLINE Vocabulary Vocabulary::from_text(std::string_view text) {
  return with_memory_for("Vocabulary", text.size(), [&] {
    std::vector<std::string> tokens;
    while (!text.empty()) {
      auto const end = text.find('\n');
      if (end == std::string_view::npos)
        throw DataError("Vocabulary: line " + std::to_string(tokens.size() + 1) + " does not end; the text was cut");
      tokens.push_back(unescaped(text.substr(0, end), tokens.size() + 1));
      text.remove_prefix(end + 1);
    }
    return Vocabulary(std::move(tokens));
  });
}

LOCKSTEP_INLINE std::string Vocabulary::unescaped(std::string_view line, std::size_t number) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\') {
      out += line[i];
      continue;
    }
    auto const next = ++i < line.size() ? line[i] : ' ';
    if (next == 'x' && i + 2 < line.size()) {
      unsigned byte = 0;
      auto const* const begin = line.data() + i + 1;
      if (std::from_chars(begin, begin + 2, byte, 16).ptr == begin + 2 && byte >= 0x80) {
        out += static_cast<char>(byte);
        i += 2;
        continue;
      }
    }
    if (next != 'n' && next != 'r' && next != '\\') {
      throw DataError("Vocabulary: line " + std::to_string(number) +
                      " has a backslash before neither n, r, a backslash nor x with two hexadecimal digits from 80");
    }
    out += next == 'n' ? '\n' : next == 'r' ? '\r' : '\\';
  }
  return out;
}

}}}  // namespace lockstep::data
