// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/philox.hpp>
#include <lockstep/train/prediction/draw_token.hpp>
#include <lockstep/train/prediction/predicted_class.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// How a text is continued: lengths, the end, and how a token is drawn.
struct ContinueOptions {
  Index count = 100;                     ///< new tokens at most
  Index longest = 0;                     ///< tokens that the model can see, the length of its embedding; 0: no limit
  std::int32_t end = -1;                 ///< token after which the text ends; -1: none
  DrawOptions draw = {};                 ///< temperature, top_k, top_p
  std::vector<std::int32_t> stops = {};  ///< further tokens after which it ends, such as that of a new line

  /// Checks the options.   @throws ConfigError for an option out of range
  void check() const {
    expect<ConfigError>(count >= 0 && longest >= 0, [&] {
      return "continue_tokens: count " + std::to_string(count) + ", longest " + std::to_string(longest) +
             "; both must be at least 0";
    });
    expect<ConfigError>(
        end >= -1 && std::all_of(stops.begin(), stops.end(), [](auto token) { return token >= 0; }), [&] {
          return "continue_tokens: end " + std::to_string(end) + " and " + std::to_string(stops.size()) +
                 " stops; they must be tokens of the vocabulary, which count from 0; an end of -1 is none";
        });
    draw.check();
  }
  /// Returns whether a text ends after this token.
  [[nodiscard]] bool ends_after(std::int32_t token) const noexcept {
    return token == end || std::find(stops.begin(), stops.end(), token) != stops.end();
  }
};

/// A text to continue.
struct Prompt {
  std::vector<std::int32_t> tokens = {};  ///< at least one
  ContinueOptions options = {};           ///< lengths, the end, and how tokens are drawn
  Philox random{0};                       ///< new token k draws with uniform(random, k): Philox(seed) for each request
};

/// Why a text ended.
enum class Ending {
  none,     ///< it continues
  stopped,  ///< by ContinueOptions::end, or one of the stops
  count,    ///< it has ContinueOptions::count new tokens
};

/// A token that a model added to a text.
struct NewToken {
  Index prompt;        ///< number of the text, from PromptBatch::add
  std::int32_t token;  ///< drawn token, also if it ends the text
  Ending ending;       ///< whether it is the text's last token
};

/// The tokens of a text that a pass of the model reads.
struct PromptTokens {
  Index prompt;                      ///< number of the text, from PromptBatch::add
  std::vector<std::int32_t> tokens;  ///< the prompt or the end of the text; later only the last token
  bool begins;                       ///< whether the text begins, so that an encoder needs its input
};

/// Texts that a causal language model continues together, token by token. They may have unequal lengths, and each ends
/// by itself. Texts can be added at any time, so that a service takes requests while others run. Keys, values and
/// states of earlier tokens are computed once, and released when a text ends.
///
/// `batch_of` takes a std::vector<PromptTokens> and returns an object, such as a data::Collated, whose batch() has a
/// row for each element: its `tokens`, and in an encoder-decoder the encoder's input of this prompt, if `begins`.
/// @determinism a text depends on the parameters and its own Prompt only, not on other texts; except with a BLAS
template <class AnyPredictor, class BatchOf>
class PromptBatch {
 public:
  /// @param predictor whose model returns a Sequence of logits, one for each token of the vocabulary; used until the
  /// batch is done
  /// @param together texts at most that the model reads in one pass; further ones wait
  /// @throws ConfigError unless `together` is at least 1
  PromptBatch(AnyPredictor& predictor, BatchOf batch_of, Index together = 32)
      : predictor_(&predictor), batch_of_(std::move(batch_of)), together_(together) {
    expect<ConfigError>(together >= 1, [&] {
      return "PromptBatch: " + std::to_string(together) + " texts together; at least 1 must run";
    });
  }

  /// Adds a text, and returns its number: texts count from 0. A text with a count of 0 is done at once.
  /// @throws ConfigError for a prompt without tokens, an option out of range, or an end or stop that the vocabulary
  /// does not have, as far as a prediction has shown its size
  Index add(Prompt prompt) {
    auto const number = added_;
    prompt.options.check();
    expect<ConfigError>(!prompt.tokens.empty(), [&] {
      return "continue_tokens: the prompt has no tokens (text " + std::to_string(number) +
             "); begin with one, such as that between documents";
    });
    check_ends(number, prompt.options);
    if (prompt.options.count > 0) waiting_.push_back({number, std::move(prompt), 0, 0});
    return added_++;
  }

  /// Returns whether all texts ended.
  [[nodiscard]] bool done() const noexcept { return running_.empty() && waiting_.empty(); }
  /// Returns how many texts the model reads in the next pass of all.
  [[nodiscard]] Index running() const noexcept { return std::ssize(running_); }

  /// Adds a token to each running text, then begins texts that wait, as far as there is room, with one pass over their
  /// prompts and a first new token. Calls on_token(NewToken const&) for each token. If it returns false, that text
  /// ends. If a text has as many tokens as the model can see, the model reads the later half of them again.
  /// @throws ConfigError if the model cannot continue, or the vocabulary does not have an end or a stop
  /// @throws DataError if a logit is not a number; all that the model throws. Texts of the pass that throws end
  template <class OnToken>
  void step(OnToken const& on_token) {
    begin_again();
    if (!running_.empty()) {
      auto rows = std::exchange(running_, {});
      auto const collated = batch_of_(tokens_of(rows, false));
      take(std::move(rows), predictor_->next(collated.batch()), on_token);
    }
    std::vector<Text> rows;
    while (!waiting_.empty() && std::ssize(running_) + std::ssize(rows) < together_) {
      rows.push_back(next_waiting());
    }
    if (rows.empty()) return;
    auto const collated = batch_of_(tokens_of(rows, true));
    if (running_.empty())
      take(std::move(rows), predictor_->begin(collated.batch()), on_token);
    else
      take(std::move(rows), predictor_->add(collated.batch()), on_token);
  }

 private:
  struct Text {
    Index number;
    Prompt prompt;  // with all tokens so far
    Index drawn;    // new tokens
    Index room;     // tokens that the model can see in addition to those that it has read
  };

  void check_ends(Index number, ContinueOptions const& options) const {
    auto const check = [&](std::int32_t token) {
      expect<ConfigError>(classes_ < 0 || token < classes_, [&] {
        return "continue_tokens: text " + std::to_string(number) + " ends after token " + std::to_string(token) +
               ", but the vocabulary has " + std::to_string(classes_) + " tokens, which count from 0";
      });
    };
    check(options.end);
    for (auto const token : options.stops) check(token);
  }

  /// Removes the first text that waits, and returns it.
  [[nodiscard]] Text next_waiting() {
    auto text = std::move(waiting_[static_cast<std::size_t>(begun_++)]);
    if (2 * begun_ > std::ssize(waiting_))
      waiting_.erase(waiting_.begin(), waiting_.begin() + std::exchange(begun_, 0));
    return text;
  }

  /// Removes the texts for which the model has no more positions. They wait before all others.
  void begin_again() {
    std::vector<Index> rows;
    std::vector<Text> stay;
    for (std::size_t i = running_.size(); i-- > 0;) {
      auto& text = running_[i];
      if (text.prompt.options.longest > 0 && text.room == 0) {
        waiting_.insert(waiting_.begin() + begun_, std::move(text));
      } else {
        rows.push_back(static_cast<Index>(i));
        stay.push_back(std::move(text));
      }
    }
    std::reverse(rows.begin(), rows.end());
    std::reverse(stay.begin(), stay.end());
    running_ = std::move(stay);
    select(rows);
  }
  /// Continues with these sequences of the predictor.
  void select(std::vector<Index> const& rows) {
    if (std::ssize(rows) < predictor_->sequences()) predictor_->select(rows);
  }

  [[nodiscard]] std::vector<PromptTokens> tokens_of(std::vector<Text>& texts, bool begins) {
    std::vector<PromptTokens> out;
    out.reserve(texts.size());
    for (auto& text : texts) {
      auto const& tokens = text.prompt.tokens;
      auto const longest = text.prompt.options.longest;
      Index seen = 1;
      if (begins) {
        seen = std::ssize(tokens);
        if (longest > 0) seen = std::min(seen, text.drawn == 0 ? longest : std::max<Index>(longest / 2, 1));
        text.room = longest - seen;
      } else {
        --text.room;
      }
      out.push_back({text.number, {tokens.end() - seen, tokens.end()}, begins});
    }
    return out;
  }

  /// Draws a token for each text of a pass. Texts that continue run after those that run already.
  template <class Prediction, class OnToken>
  void take(std::vector<Text> texts, Prediction const& prediction, OnToken const& on_token) {
    if (classes_ < 0) {
      classes_ = std::ssize(detail::logits_of("continue_tokens", prediction, 0));
      for (auto const& text : texts) check_ends(text.number, text.prompt.options);
      for (auto const& text : waiting_) check_ends(text.number, text.prompt.options);
    }
    auto const all = std::ssize(texts);
    std::vector<std::int32_t> tokens;
    for (Index row = 0; row < all; ++row) {
      auto const& text = texts[static_cast<std::size_t>(row)];
      tokens.push_back(draw_token(prediction, detail::last_slot(prediction, row, all),
                                  uniform(text.prompt.random, static_cast<std::uint64_t>(text.drawn)),
                                  text.prompt.options.draw));
    }
    std::vector<Index> rows(running_.size());
    std::iota(rows.begin(), rows.end(), Index{0});
    auto const earlier = std::ssize(rows);
    std::vector<Text> stay;
    for (Index row = 0; row < all; ++row) {
      auto& text = texts[static_cast<std::size_t>(row)];
      auto const& options = text.prompt.options;
      auto const token = tokens[static_cast<std::size_t>(row)];
      text.prompt.tokens.push_back(token);
      NewToken const next{text.number, token,
                          options.ends_after(token)       ? Ending::stopped
                          : ++text.drawn == options.count ? Ending::count
                                                          : Ending::none};
      bool continues = next.ending == Ending::none;
      if constexpr (std::convertible_to<decltype(on_token(next)), bool>)
        continues = on_token(next) && continues;
      else
        on_token(next);
      if (!continues) continue;
      rows.push_back(earlier + row);
      stay.push_back(std::move(text));
    }
    running_.insert(running_.end(), std::move_iterator(stay.begin()), std::move_iterator(stay.end()));
    select(rows);
  }

  AnyPredictor* predictor_;
  BatchOf batch_of_;
  Index together_;
  std::vector<Text> waiting_;  // in the order in which they begin, after those that were removed
  Index begun_ = 0;            // texts at the beginning of waiting_ that were removed, at most half of it
  std::vector<Text> running_;  // in the order of the predictor's sequences
  Index added_ = 0;
  Index classes_ = -1;  // of the vocabulary; -1 before the first prediction
};

}}}  // namespace lockstep::train
