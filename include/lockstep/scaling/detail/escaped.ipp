// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

#include <lockstep/core/utf8.hpp>
#include <lockstep/scaling/detail/escaped.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling::detail {

LOCKSTEP_INLINE std::string html(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    auto const length = utf8_length(text);
    auto const c = static_cast<unsigned char>(text[0]);
    if (length == 0)
      out += "\xEF\xBF\xBD";
    else if (c < 0x20 || c == 0x7F)
      out += ' ';
    else if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

LOCKSTEP_INLINE std::string latex(std::string_view text) {
  auto const escaped = [](unsigned char c) -> std::string {
    if (c < 0x20 || c == 0x7F) return " ";
    switch (c) {
      case '\\':
        return "\\textbackslash{}";
      case '~':
        return "\\textasciitilde{}";
      case '^':
        return "\\textasciicircum{}";
      case '<':
        return "\\textless{}";
      case '>':
        return "\\textgreater{}";
      case '|':
        return "\\textbar{}";
      case '"':
        return "''";
      case '&':
      case '%':
      case '$':
      case '#':
      case '_':
      case '{':
      case '}':
        return std::string("\\") + static_cast<char>(c);
      default:
        return std::string(1, static_cast<char>(c));
    }
  };
  std::string out;
  while (!text.empty()) {
    auto const length = utf8_length(text);
    auto const lead = static_cast<unsigned char>(text[0]);
    if (length == 1)
      out += escaped(lead);
    else if (length == 2 && lead <= 0xC5 && !(lead == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0))
      out += text.substr(0, 2);  // up to U+017F
    else
      out += '?';
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

LOCKSTEP_INLINE std::string csv(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  std::string out = "\"";
  for (char const c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

LOCKSTEP_INLINE std::string file_name(std::string_view text) {
  std::string out;
  for (char const c : text) {
    bool const kept =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    out += kept ? c : '_';
  }
  if (out.empty() || out[0] == '.') out.insert(0, 1, '_');
  return out;
}

}}}  // namespace lockstep::scaling::detail
