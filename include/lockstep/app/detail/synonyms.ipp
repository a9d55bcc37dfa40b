// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/app/detail/synonyms.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

LOCKSTEP_INLINE std::string parse_boolean(std::string const& text) {
  std::string small = text;
  for (auto& c : small)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  if (small == "true" || small == "yes" || small == "on" || small == "1") return "true";
  return small == "false" || small == "no" || small == "off" || small == "0" ? "false" : text;
}

LOCKSTEP_INLINE Meaning translate(Translation const& row, std::string const& text) {
  Meaning out;
  auto const match = [&](std::string_view word) {
    auto const theirs = word.substr(0, word.find('='));
    if (word == "*") out = {true, {text}};
    if (word == "*" || (theirs != text && theirs != parse_boolean(text))) return word == "*";
    out.known = true;
    for (auto ours = word.substr(theirs.size() + 1); !ours.empty();) {
      auto const end = std::min(ours.find('|'), ours.size());
      out.values.emplace_back(ours.substr(0, end));
      ours.remove_prefix(std::min(end + 1, ours.size()));
    }
    return true;
  };
  any_word(row.values, match);
  return out;
}

LOCKSTEP_INLINE std::string words_of(Translation const& row) {
  std::string all;
  any_word(row.values, [&](std::string_view word) {
    all += (all.empty() ? "" : ", ") + std::string(word.substr(0, word.find('=')));
    return false;
  });
  return all;
}

}}}  // namespace lockstep::app::detail
