// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/philox.hpp>
#include <lockstep/train/prediction/draw_token.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Options of continue_tokens: lengths, the end, and how a token is drawn.
struct ContinueOptions {
  Index count = 100;      ///< new tokens at most
  Index longest = 0;      ///< tokens that the model can see, the length of its embedding; 0: no limit
  std::int32_t end = -1;  ///< token after which the text ends; -1: none
  DrawOptions draw = {};  ///< temperature, top_k, top_p

  /// Checks the options.   @throws ConfigError for an option out of range
  void check() const {
    expect<ConfigError>(count >= 0 && longest >= 0, [&] {
      return "continue_tokens: count " + std::to_string(count) + ", longest " + std::to_string(longest) +
             "; both must be at least 0";
    });
    draw.check();
  }
};

/// Continues a text with a causal language model, token by token: draws each token by the logits of the last one, with
/// draw_token. Keys, values and states of earlier tokens are computed once. If the model has seen `longest` tokens, it
/// sees only the later half of them again, and continues. Token k draws with uniform(random, k).
/// @param predictor a Predictor whose model returns a Sequence of logits, one for each token of the vocabulary
/// @param text the prompt, of at least one token; if it has more than `longest`, the model sees its end
/// @param batch_of called with tokens; returns a data::Collated with these as its only sample
/// @return the prompt and the new tokens; an end token is the last of them
/// @determinism depends on the parameters and the arguments only
/// @throws ConfigError for a prompt without tokens or an option out of range, or if the model cannot continue
/// @throws DataError if a logit is not a number; all that the model throws
template <class AnyPredictor, class BatchOf>
[[nodiscard]] std::vector<std::int32_t> continue_tokens(AnyPredictor& predictor, std::vector<std::int32_t> text,
                                                        Philox const& random, ContinueOptions const& options,
                                                        BatchOf const& batch_of) {
  options.check();
  expect<ConfigError>(!text.empty(), [] {
    return std::string("continue_tokens: the prompt has no tokens; begin with one, such as that between documents");
  });
  Index room = 0;  // tokens that the model can see in addition to those of the predictor
  for (Index k = 0; k < options.count; ++k) {
    bool const begins = k == 0 || (options.longest > 0 && room == 0);
    Index seen = 1;
    if (begins) {
      seen = std::ssize(text);
      if (options.longest > 0)
        seen = std::min(seen, k == 0 ? options.longest : std::max<Index>(options.longest / 2, 1));
      room = options.longest - seen;
    } else {
      --room;
    }
    auto const collated = batch_of(std::vector<std::int32_t>(text.end() - seen, text.end()));
    auto const logits = begins ? predictor.begin(collated.batch()) : predictor.next(collated.batch());
    text.push_back(draw_token(logits, seen - 1, uniform(random, static_cast<std::uint64_t>(k)), options.draw));
    if (text.back() == options.end) break;
  }
  return text;
}

}}}  // namespace lockstep::train
