// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/train/metrics/detail/split_words.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Corpus chrF2 in [0, 100], with one reference per hypothesis: F-score (beta 2) of n-grams of 1 to 6 characters, white
/// space removed, case-sensitive. Equals sacrebleu's signature nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no.
/// `totals()` add up over ranks and devices.
/// @source Popović 2015, "chrF: character n-gram F-score"; sacrebleu 2.6
class Chrf {
 public:
  static constexpr char const* signature = "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no";

  /// Counts a hypothesis and its reference, both UTF-8.
  void add(std::string_view hypothesis, std::string_view reference) {
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
  /// Returns for each order the n-grams of the hypotheses, of the references, and the matched ones.
  [[nodiscard]] std::span<double> totals() noexcept { return totals_; }
  [[nodiscard]] double value() const {
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
    precision /= effective, recall /= effective;
    return 100 * (1 + factor) * precision * recall / (factor * precision + recall);
  }
  [[nodiscard]] char const* name() const noexcept { return "chrf"; }

 private:
  static constexpr std::size_t orders = 6;
  static constexpr double beta = 2;

  /// Characters of a string, without white space.
  class Characters {
   public:
    explicit Characters(std::string_view text) {
      for (auto const word : detail::split_words(text)) text_ += word;
      for (std::size_t at = 0; at < text_.size();) {
        begins_.push_back(at);
        at += detail::character_bytes(std::string_view(text_).substr(at));
      }
      begins_.push_back(text_.size());
    }
    [[nodiscard]] std::map<std::string_view, double> ngrams(std::size_t n) const {
      std::map<std::string_view, double> out;
      for (std::size_t i = 0; i + n < begins_.size(); ++i)
        ++out[std::string_view(text_).substr(begins_[i], begins_[i + n] - begins_[i])];
      return out;
    }

   private:
    std::string text_;
    std::vector<std::size_t> begins_;  // of the characters, and the end of the string
  };

  std::array<double, 3 * orders> totals_{};
};

}}}  // namespace lockstep::train
