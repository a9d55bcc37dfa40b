// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/core/philox.hpp>
#include <lockstep/data/sample_key.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Options of MaskTokens: ids, shares, whole words.
struct MaskTokensOptions {
  std::int32_t mask = -1;                  ///< id of the mask token, such as "[MASK]"
  Index vocabulary = 0;                    ///< number of ids, with the mask's
  std::vector<std::int32_t> special = {};  ///< ids that are neither masked nor drawn, such as "[CLS]" and "[SEP]"
  double share = 0.15;                     ///< tokens of a text that the model predicts, in (0, 1]
  double mask_share = 0.8;                 ///< share of these that becomes the mask token
  double random_share = 0.1;               ///< share of these that becomes a random token; the others stay
  /// Returns whether an id continues the word of the token before it, such as a piece that begins with "##". The
  /// tokens of a word are then masked together or not at all (whole-word masking). Called once for each id. Empty:
  /// each token is a word.
  std::function<bool(std::int32_t)> continues_word = {};
};

namespace detail {

/// Chooses and replaces tokens for MaskTokens.
class TokenMasker {
 public:
  /// @throws ConfigError for an id outside the vocabulary, a share outside its range, or no id to draw
  explicit TokenMasker(MaskTokensOptions const& options);

  /// Replaces tokens, and sets the places and the former ids of those that the model predicts.
  void mask(std::vector<std::int32_t>& tokens, std::vector<std::int32_t>& places, std::vector<std::int32_t>& labels,
            Philox const& random) const;

 private:
  enum class Kind : std::uint8_t { begins_word, continues_word, special };

  /// Returns the first token of each word. Words do not contain special tokens, and do not continue behind them.
  /// @throws DataError for a token that is no id
  [[nodiscard]] std::vector<std::int32_t> words_of(std::span<std::int32_t const> tokens) const;
  /// Returns the token behind the last of a word.
  [[nodiscard]] std::size_t end_of_word(std::span<std::int32_t const> tokens, std::size_t first) const;

  MaskTokensOptions options_;
  std::vector<Kind> kinds_;             // of each id
  std::vector<std::int32_t> ordinary_;  // the ids that are drawn
};

}  // namespace detail

/// Masks tokens for masked language modelling, as the pretraining of BERT: `MaskTokens{&Text::tokens, &Text::places,
/// &Text::labels, {.mask = 103, .vocabulary = 30522, .special = {0, 101, 102}}}` is a function for Transform. It
/// chooses `share` of a text's ordinary tokens, rounded, and at least one. It sets `places` to their places, ascending,
/// and `labels` to their ids. 80 % of them become the mask token, 10 % a random ordinary token, and 10 % stay as they
/// are. The model predicts at these places only: nn::gather_tokens(context, x, batch[&Text::places]).
///
/// With `continues_word`, it visits the words in random order and takes each that does not exceed this number of
/// tokens. A text may then have fewer, or none.
///
/// Each epoch has other places. An evaluation has those of epoch 0 each time.
/// @determinism bitwise: a function of the loader's seed, the epoch and the sample's position, for any number of ranks
/// and workers, and after resuming
/// @throws ConfigError from the constructor for an id outside the vocabulary, or a share outside its range
/// @throws DataError for a token outside the vocabulary
/// @source Devlin et al. 2019, BERT, section 3.1, and the rule for whole words published with its code
template <class Sample>
class MaskTokens {
  using Ids = std::vector<std::int32_t>;

 public:
  /// @param tokens member with the ids of a text, which are masked
  /// @param places member that is set to the places of the chosen tokens, counted from 0
  /// @param labels member that is set to the ids that the chosen tokens had
  MaskTokens(Ids Sample::*tokens, Ids Sample::*places, Ids Sample::*labels, MaskTokensOptions const& options)
      : tokens_(tokens), places_(places), labels_(labels), masker_(options) {}

  /// Returns the sample with masked tokens.
  [[nodiscard]] Sample operator()(Sample sample, SampleKey const& key) const {
    masker_.mask(sample.*tokens_, sample.*places_, sample.*labels_, key.random("MaskTokens"));
    return sample;
  }

 private:
  Ids Sample::*tokens_;
  Ids Sample::*places_;
  Ids Sample::*labels_;
  detail::TokenMasker masker_;
};

}}}  // namespace lockstep::data

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/text/mask_tokens.ipp>
#endif
