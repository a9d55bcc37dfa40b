// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include <lockstep/core/philox.hpp>
#include <lockstep/train/prediction/prompt_batch.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

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
  PromptBatch batch(
      predictor, [&](std::vector<PromptTokens> const& rows) { return batch_of(rows.front().tokens); }, 1);
  batch.add({text, options, random});
  while (!batch.done()) batch.step([&](NewToken const& next) { text.push_back(next.token); });
  return text;
}

/// Continues many texts, `together` of them at a time. Each result equals that of continue_tokens for this prompt
/// alone. A text that ends makes room for the next one.
/// @param predictor as of continue_tokens
/// @param prompts of any lengths; see Prompt for options and random numbers of each
/// @param batch_of, on_token as of PromptBatch: batch_of makes a batch of the tokens that a pass reads, and on_token
/// takes each new token
/// @return each prompt and its new tokens, in the order of the prompts
/// @determinism as PromptBatch
/// @throws as PromptBatch::add and PromptBatch::step; nothing is computed if a prompt or an option is invalid
template <class AnyPredictor, class BatchOf, class OnToken>
[[nodiscard]] std::vector<std::vector<std::int32_t>> continue_prompts(AnyPredictor& predictor,
                                                                      std::vector<Prompt> const& prompts,
                                                                      BatchOf const& batch_of, Index together,
                                                                      OnToken const& on_token) {
  PromptBatch batch(
      predictor, [&](std::vector<PromptTokens> const& rows) { return batch_of(rows); }, together);
  std::vector<std::vector<std::int32_t>> texts;
  for (auto const& prompt : prompts) {
    texts.push_back(prompt.tokens);
    batch.add(prompt);
  }
  while (!batch.done())
    batch.step([&](NewToken const& next) {
      texts[static_cast<std::size_t>(next.prompt)].push_back(next.token);
      return on_token(next);
    });
  return texts;
}
/// Continues many texts, as above, without a function for each token.
template <class AnyPredictor, class BatchOf>
[[nodiscard]] std::vector<std::vector<std::int32_t>> continue_prompts(AnyPredictor& predictor,
                                                                      std::vector<Prompt> const& prompts,
                                                                      BatchOf const& batch_of, Index together = 32) {
  return continue_prompts(predictor, prompts, batch_of, together, [](NewToken const&) {});
}

}}}  // namespace lockstep::train
