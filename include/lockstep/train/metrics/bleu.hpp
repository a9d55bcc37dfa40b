// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/train/metrics/detail/split_words.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Corpus BLEU in [0, 100], with one reference per hypothesis: n-grams of 1 to 4 tokens, tokenizer 13a, exponential
/// smoothing, case-sensitive. Equals sacrebleu's signature nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp. `totals()` add
/// up over ranks and devices.
/// @source Papineni et al. 2002; Post 2018, "A Call for Clarity in Reporting BLEU Scores"; sacrebleu 2.6
class Bleu {
 public:
  static constexpr char const* signature = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp";  ///< as sacrebleu prints it

  /// Counts a hypothesis and its reference, both UTF-8.
  void add(std::string_view hypothesis, std::string_view reference);
  /// Returns the length of the hypotheses, the length of the references, 4 counts of matched n-grams, and 4 counts of
  /// all n-grams of the hypotheses.
  [[nodiscard]] std::span<double> totals() noexcept { return totals_; }
  /// Returns BLEU in [0, 100]; 0 without hypotheses.
  [[nodiscard]] double value() const;
  /// Returns the name in reports.
  [[nodiscard]] char const* name() const noexcept { return "bleu"; }

  /// Returns the tokens of mteval-v13a, separated by one space.
  [[nodiscard]] static std::string tokenize(std::string_view text);

 private:
  static constexpr std::size_t orders = 4;

  static std::size_t trailing_space(std::string const& line) noexcept;
  static void replace(std::string& text, std::string_view from, std::string_view to);
  /// Returns whether c is ASCII punctuation or a space, except ' , - and .
  static bool is_symbol(char c) noexcept;
  static std::map<std::vector<std::string_view>, double> ngrams(std::vector<std::string_view> const& words,
                                                                std::size_t n);

  std::array<double, 2 + 2 * orders> totals_{};
};

}}}  // namespace lockstep::train

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/metrics/bleu.ipp>
#endif
