// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/train/prediction/predicted_class.hpp>
#include <lockstep/train/prediction/predictor.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Options of beam_search: hypotheses, lengths, tokens.
struct BeamSearchOptions {
  Index beam = 4;                             ///< hypotheses kept per sample; 1 is greedy decoding
  double length_penalty = 1;                  ///< log probabilities are divided by length^length_penalty; 0 for none
  Index max_length = 64;                      ///< largest number of tokens of a hypothesis, end token included
  std::int32_t end = 2;                       ///< token that ends a hypothesis
  std::vector<std::int32_t> suppressed = {};  ///< tokens that no hypothesis has, such as data::Vocabulary::padding

  /// Checks the options.   @throws ConfigError if a value is out of range
  void check() const;
};

/// A decoded sequence of tokens.
struct Hypothesis {
  std::vector<std::int32_t> tokens = {};  ///< without the prompt and the end token
  double log_probability = 0;             ///< sum over the tokens, the end token included
  double score = 0;                       ///< log_probability / length^length_penalty, end token included in the length
  bool ended = false;                     ///< whether the end token ended it, not max_length
};

namespace detail {

/// Beams of one sample and their state between tokens. Ties go to the lower beam, then to the lower token.
class Beams {
 public:
  struct Beam {
    std::vector<std::int32_t> tokens;
    double log_probability;
    Index row;  // in the last prediction
  };

  Beams(BeamSearchOptions const& options, Index row) : options_(&options), live_{{{}, 0, row}} {}

  [[nodiscard]] std::vector<Beam> const& live() const noexcept { return live_; }
  [[nodiscard]] bool done() const noexcept { return live_.empty(); }
  /// Returns the hypotheses, best first.   @pre done()
  [[nodiscard]] std::vector<Hypothesis> const& finished() const noexcept { return finished_; }

  /// Numbers the beams' rows in the next prediction, beginning with `first`.
  void renumber(Index first) noexcept;
  /// Extends each beam by one token.
  /// @shape logits(row) [classes] for the beams' rows
  template <class Logits>
  void extend(Index classes, Logits const& logits) {
    auto const most = 2 * options_->beam;  // enough even if `beam` candidates end
    std::vector<Candidate> best;
    for (std::size_t b = 0; b < live_.size(); ++b) {
      auto const* const row = logits(live_[b].row);
      double largest = -HUGE_VAL, sum = 0;
      for (Index c = 0; c < classes; ++c) largest = std::max(largest, static_cast<double>(row[c]));
      for (Index c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(row[c]) - largest);
      auto const base = live_[b].log_probability - largest - std::log(sum);
      expect<DataError>(std::isfinite(base), [] {
        return "beam search: the model predicts logits that are not finite; load parameters of a run that converged";
      });
      for (Index c = 0; c < classes; ++c) {
        Candidate const next{base + static_cast<double>(row[c]), b, static_cast<std::int32_t>(c)};
        if (std::ssize(best) == most && !(next.log_probability > best.back().log_probability)) continue;
        if (is_suppressed(c)) continue;
        auto const at = std::find_if(best.begin(), best.end(),
                                     [&](auto const& each) { return next.log_probability > each.log_probability; });
        best.insert(at, next);
        if (std::ssize(best) > most) best.pop_back();
      }
    }
    take(best);
  }

 private:
  struct Candidate {
    double log_probability;
    std::size_t beam;
    std::int32_t token;
  };

  [[nodiscard]] bool is_suppressed(Index token) const noexcept {
    auto const& all = options_->suppressed;
    return std::find(all.begin(), all.end(), token) != all.end();
  }
  void take(std::vector<Candidate> const& candidates);
  void finish(std::vector<std::int32_t> const& tokens, double log_probability, Index length, bool ended);
  [[nodiscard]] double score(double log_probability, Index length) const;

  BeamSearchOptions const* options_;
  std::vector<Beam> live_;            // best first
  std::vector<Hypothesis> finished_;  // best first
};

/// Searches for hypotheses for each row of a batch. Returns beams that are done.
template <class Model, class Batch, class Next>
[[nodiscard]] std::vector<Beams> search_beams(Predictor<Model>& predictor, Batch const& prompts,
                                              BeamSearchOptions const& options, Next const& next) {
  options.check();
  std::vector<Beams> samples;
  for (Index row = 0; row < prompts.rows(); ++row) samples.emplace_back(options, row);
  // Extends all beams that are not done. Returns the row that each of them continues, and its token.
  auto const extend = [&](auto const& prediction) {
    auto const logits = [&] {
      if constexpr (requires { prediction.tokens.value; })
        return prediction.tokens.value;
      else
        return prediction.value;
    }();
    std::pair<std::vector<Index>, std::vector<std::int32_t>> chosen;
    Index rows = 0;
    for (auto const& sample : samples) rows += std::ssize(sample.live());
    for (auto& sample : samples) {
      if (sample.done()) continue;
      auto const rows_before = std::ssize(chosen.first);
      sample.extend(logits.extent[1],
                    [&](Index row) { return logits.data + last_slot(prediction, row, rows) * logits.extent[1]; });
      for (auto const& beam : sample.live()) {
        chosen.first.push_back(beam.row);
        chosen.second.push_back(beam.tokens.back());
      }
      sample.renumber(rows_before);
    }
    return chosen;
  };
  if (samples.empty()) return samples;
  auto chosen = extend(predictor.begin(prompts));
  while (!chosen.first.empty()) {
    predictor.select(chosen.first);
    auto const tokens = next(std::as_const(chosen.second));
    chosen = extend(predictor.next(tokens.batch()));
  }
  return samples;
}

}  // namespace detail

/// Returns the best hypothesis for each row of a batch by beam search. A beam of 1 gives greedy decoding.
/// The encoder of a model with `nn::encode_once` runs once per sample, and beams share its memory. A sample is done at
/// max_length, or once `beam` hypotheses have ended and no unfinished one has a better score at its length. A beam at
/// least as large as the number of hypotheses makes the search exhaustive.
/// @param prompts a batch of sequences, such as the begin token, with the encoder's input; they may have unequal
/// lengths
/// @param next next(tokens) takes a std::vector<std::int32_t> and returns an object, such as a data::Collated. Its
/// batch() has one row of one token for each element; the encoder's columns may be empty.
/// @throws ConfigError if an option is out of range, all tokens are suppressed, or the model does not predict token by
/// token
/// @throws DataError if the model predicts logits that are not finite
/// @determinism bitwise; a row's result does not depend on the other rows, except with a BLAS
template <class Model, class Batch, class Next>
[[nodiscard]] std::vector<Hypothesis> beam_search(Predictor<Model>& predictor, Batch const& prompts,
                                                  BeamSearchOptions const& options, Next const& next) {
  std::vector<Hypothesis> out;
  for (auto const& sample : detail::search_beams(predictor, prompts, options, next))
    out.push_back(sample.finished().front());
  return out;
}

/// Returns up to `beam` hypotheses for each row of a batch, best first: the n-best list of the search that
/// `beam_search` makes. No two of a list have equal tokens. A list is shorter only if fewer hypotheses exist.
/// @param prompts, next as for `beam_search`
/// @throws all that beam_search throws
/// @determinism as beam_search
template <class Model, class Batch, class Next>
[[nodiscard]] std::vector<std::vector<Hypothesis>> beam_search_n_best(Predictor<Model>& predictor, Batch const& prompts,
                                                                      BeamSearchOptions const& options,
                                                                      Next const& next) {
  std::vector<std::vector<Hypothesis>> out;
  for (auto const& sample : detail::search_beams(predictor, prompts, options, next)) out.push_back(sample.finished());
  return out;
}

}}}  // namespace lockstep::train

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/prediction/beam_search.ipp>
#endif
