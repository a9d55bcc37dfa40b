// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/shortest.hpp>
#include <lockstep/train/prediction/beam_search.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

LOCKSTEP_INLINE void BeamSearchOptions::check() const {
  auto const require = [](bool holds, char const* name, auto value, char const* rule) {
    expect<ConfigError>(
        holds, [&] { return std::string("beam search: ") + name + " is " + shortest(value) + "; it must be " + rule; });
  };
  require(beam >= 1, "beam", beam, "at least 1");
  require(max_length >= 1, "max_length", max_length, "at least 1");
  require(length_penalty >= 0 && std::isfinite(length_penalty), "length_penalty", length_penalty, "at least 0");
  require(end >= 0, "end", end, "a token of the vocabulary");
}

}}}  // namespace lockstep::train

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_INLINE void Beams::renumber(Index first) noexcept {
  for (auto& beam : live_) beam.row = first++;
}

LOCKSTEP_INLINE void Beams::take(std::vector<Candidate> const& candidates) {
  expect<ConfigError>(!candidates.empty(),
                      [] { return std::string("beam search: suppressed has all tokens; leave out at least the end"); });
  std::vector<Beam> next;
  auto const length = std::ssize(live_.front().tokens) + 1;
  for (std::size_t rank = 0; rank < candidates.size() && std::ssize(next) < options_->beam; ++rank) {
    auto const& each = candidates[rank];
    auto const& beam = live_[each.beam];
    if (each.token == options_->end) {
      if (static_cast<Index>(rank) < options_->beam) finish(beam.tokens, each.log_probability, length, true);
      continue;
    }
    next.push_back({beam.tokens, each.log_probability, beam.row});
    next.back().tokens.push_back(each.token);
  }
  if (length == options_->max_length)
    for (auto const& beam : next) finish(beam.tokens, beam.log_probability, length, false);
  bool const enough = length == options_->max_length || next.empty() ||
                      (std::ssize(finished_) >= options_->beam &&
                       finished_.back().score >= score(next.front().log_probability, length));
  live_ = enough ? std::vector<Beam>{} : std::move(next);
}

LOCKSTEP_INLINE void Beams::finish(std::vector<std::int32_t> const& tokens, double log_probability, Index length,
                                   bool ended) {
  Hypothesis made{tokens, log_probability, score(log_probability, length), ended};
  auto const at =
      std::find_if(finished_.begin(), finished_.end(), [&](auto const& each) { return made.score > each.score; });
  finished_.insert(at, std::move(made));
  if (std::ssize(finished_) > options_->beam) finished_.pop_back();
}

LOCKSTEP_INLINE double Beams::score(double log_probability, Index length) const {
  return log_probability / std::pow(static_cast<double>(length), options_->length_penalty);
}

}}}  // namespace lockstep::train::detail
