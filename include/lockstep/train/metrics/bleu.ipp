// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/metrics/bleu.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

LOCKSTEP_INLINE void Bleu::add(std::string_view hypothesis, std::string_view reference) {
  auto const written = tokenize(hypothesis), expected = tokenize(reference);
  auto const words = detail::split_words(written), wanted = detail::split_words(expected);
  totals_[0] += static_cast<double>(words.size());
  totals_[1] += static_cast<double>(wanted.size());
  for (std::size_t n = 1; n <= orders; ++n) {
    auto const known = ngrams(wanted, n);
    for (auto const& [ngram, count] : ngrams(words, n)) {
      totals_[2 + orders + n - 1] += count;
      if (auto const found = known.find(ngram); found != known.end())
        totals_[2 + n - 1] += std::min(count, found->second);
    }
  }
}

LOCKSTEP_INLINE double Bleu::value() const {
  auto const written = totals_[0], wanted = totals_[1];
  auto const* const matched = totals_.data() + 2;
  auto const* const all = matched + orders;
  if (std::all_of(matched, matched + orders, [](double count) { return count == 0; })) return 0;
  double const brevity = written < wanted ? std::exp(1 - wanted / written) : 1;
  double sum = 0, smooth = 1;
  for (std::size_t n = 0; n < orders; ++n) {
    if (all[n] == 0) return 0;  // no hypothesis is that long
    if (matched[n] == 0) smooth *= 2;
    sum += std::log(matched[n] == 0 ? 100 / (smooth * all[n]) : 100 * matched[n] / all[n]);
  }
  return brevity * std::exp(sum / orders);
}

LOCKSTEP_INLINE std::string Bleu::tokenize(std::string_view text) {
  std::string line(text);
  while (!line.empty() && trailing_space(line) > 0) line.resize(line.size() - trailing_space(line));
  replace(line, "<skipped>", "");
  replace(line, "-\n", "");
  replace(line, "\n", " ");
  replace(line, "&quot;", "\"");
  replace(line, "&amp;", "&");
  replace(line, "&lt;", "<");
  replace(line, "&gt;", ">");
  std::string spaced;
  for (char const c : " " + line + " ") {
    if (is_symbol(c))
      spaced.append({' ', c, ' '});
    else
      spaced += c;
  }
  // In each of the three passes, a character belongs to at most one match.
  auto const pass = [](std::string const& from, auto const& first, auto const& second, bool before) {
    std::string out;
    for (std::size_t i = 0; i < from.size(); ++i) {
      bool const match = i + 1 < from.size() && first(from[i]) && second(from[i + 1]);
      if (match && before)
        (out += ' ') += from[i];
      else
        out += from[i];
      if (!match) continue;
      (out += ' ') += from[++i];
      if (!before) out += ' ';
    }
    return out;
  };
  auto const digit = [](char c) { return c >= '0' && c <= '9'; };
  auto const other = [&](char c) { return !digit(c); };
  auto const mark = [](char c) { return c == '.' || c == ','; };
  spaced = pass(spaced, other, mark, false);
  spaced = pass(spaced, mark, other, true);
  spaced = pass(
      spaced, digit, [](char c) { return c == '-'; }, false);
  std::string out;
  for (auto const word : detail::split_words(spaced)) (out += out.empty() ? "" : " ") += word;
  return out;
}

LOCKSTEP_INLINE std::size_t Bleu::trailing_space(std::string const& line) noexcept {
  for (std::size_t length = 1; length <= std::min<std::size_t>(3, line.size()); ++length) {
    auto const end = std::string_view(line).substr(line.size() - length);
    if (detail::character_bytes(end) == length && detail::is_space(end)) return length;
  }
  return 0;
}

LOCKSTEP_INLINE void Bleu::replace(std::string& text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

LOCKSTEP_INLINE bool Bleu::is_symbol(char c) noexcept {
  auto const in = [c](char first, char last) { return c >= first && c <= last; };
  return in('{', '~') || in('[', '`') || in(' ', '&') || in('(', '+') || in(':', '@') || c == '/';
}

LOCKSTEP_INLINE std::map<std::vector<std::string_view>, double> Bleu::ngrams(std::vector<std::string_view> const& words,
                                                                             std::size_t n) {
  std::map<std::vector<std::string_view>, double> out;
  for (std::size_t i = 0; i + n <= words.size(); ++i) {
    auto const first = words.begin() + static_cast<std::ptrdiff_t>(i);
    ++out[{first, first + static_cast<std::ptrdiff_t>(n)}];
  }
  return out;
}

}}}  // namespace lockstep::train
