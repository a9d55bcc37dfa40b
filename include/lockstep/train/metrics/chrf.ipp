// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/metrics/chrf.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

LOCKSTEP_INLINE void Chrf::add(std::string_view hypothesis, std::string_view reference) {
  Characters const written(hypothesis), wanted(reference);
  for (std::size_t n = 1; n <= orders; ++n) {
    auto const known = wanted.ngrams(n);
    double all = 0, expected = 0, matched = 0;
    for (auto const& [ngram, count] : known) expected += count;
    for (auto const& [ngram, count] : written.ngrams(n)) {
      all += count;
      if (auto const found = known.find(ngram); found != known.end()) matched += std::min(count, found->second);
    }
    auto* const total = totals_.data() + 3 * (n - 1);
    total[0] += known.empty() ? 0 : all;
    total[1] += expected;
    total[2] += matched;
  }
}

LOCKSTEP_INLINE double Chrf::value() const {
  constexpr double factor = beta * beta;
  double precision = 0, recall = 0;
  int effective = 0;
  for (std::size_t n = 0; n < orders; ++n) {
    auto const* const total = totals_.data() + 3 * n;
    if (total[0] == 0 || total[1] == 0) continue;
    precision += total[2] / total[0];
    recall += total[2] / total[1];
    ++effective;
  }
  if (precision + recall == 0) return 0;
  precision /= effective;
  recall /= effective;
  return 100 * (1 + factor) * precision * recall / (factor * precision + recall);
}

LOCKSTEP_INLINE Chrf::Characters::Characters(std::string_view text) {
  for (auto const word : detail::split_words(text)) text_ += word;
  for (std::size_t at = 0; at < text_.size();) {
    begins_.push_back(at);
    at += detail::character_bytes(std::string_view(text_).substr(at));
  }
  begins_.push_back(text_.size());
}

LOCKSTEP_INLINE std::map<std::string_view, double> Chrf::Characters::ngrams(std::size_t n) const {
  std::map<std::string_view, double> out;
  for (std::size_t i = 0; i + n < begins_.size(); ++i)
    ++out[std::string_view(text_).substr(begins_[i], begins_[i + n] - begins_[i])];
  return out;
}

}}}  // namespace lockstep::train
