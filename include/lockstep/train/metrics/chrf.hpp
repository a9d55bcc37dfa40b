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
  static constexpr char const* signature = "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no";  ///< as sacrebleu prints it

  /// Counts a hypothesis and its reference, both UTF-8.
  void add(std::string_view hypothesis, std::string_view reference);
  /// Returns for each order the n-grams of the hypotheses, of the references, and the matched ones.
  [[nodiscard]] std::span<double> totals() noexcept { return totals_; }
  /// Returns chrF2 in [0, 100]; 0 without hypotheses.
  [[nodiscard]] double value() const;
  /// Returns the name in reports.
  [[nodiscard]] char const* name() const noexcept { return "chrf"; }

 private:
  static constexpr std::size_t orders = 6;
  static constexpr double beta = 2;

  /// Characters of a string, without white space.
  class Characters {
   public:
    explicit Characters(std::string_view text);
    [[nodiscard]] std::map<std::string_view, double> ngrams(std::size_t n) const;

   private:
    std::string text_;
    std::vector<std::size_t> begins_;  // of the characters, and the end of the string
  };

  std::array<double, 3 * orders> totals_{};
};

}}}  // namespace lockstep::train

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/metrics/chrf.ipp>
#endif
