// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/attention/attention.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/linear/activation_option.hpp>
#include <lockstep/nn/normalization/layer_norm.hpp>
#include <lockstep/nn/transformer/detail/layer_stack.hpp>
#include <lockstep/nn/transformer/detail/residual_connection.hpp>
#include <lockstep/nn/transformer/feed_forward.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Encoder layer: x1 = norm(x + dropout(attention(x))), y = norm(x1 + dropout(feed_forward(x1))). With `norm_first`:
/// x1 = x + dropout(attention(norm(x))), y = x1 + dropout(feed_forward(norm(x1))). Order and dropout are those of
/// torch.nn.TransformerEncoderLayer: dropout applies to the attention weights, after the attention, after the
/// activation and after the feed-forward part.
/// @determinism bitwise, for any number of threads
/// @source Vaswani et al.: Attention Is All You Need (2017)
class TransformerEncoderLayer : detail::RejectedSequenceCalls {
 public:
  /// Options of one layer: widths, heads, mask, dropout, place of the norms.
  struct Options {
    Index width;                                     ///< channels of every token
    Index heads;                                     ///< number of heads; each takes width / heads channels
    Index feed_forward;                              ///< width inside the feed-forward part
    double dropout = 0;                              ///< probability
    bool causal = false;                             ///< token i attends only to tokens up to i
    bool norm_first = false;                         ///< normalizes the input of each part instead of the sum after it
    ActivationOption activation = Activation::gelu;  ///< of the feed-forward part
    double epsilon = 1e-5;                           ///< of the norms
    double rotary_base = 0;                          ///< base of rotary positions, for example 10000; 0: none
  };

  /// @throws ConfigError for a size below 1 or a probability outside [0, 1)   @throws ShapeError unless heads divides
  /// width
  explicit TransformerEncoderLayer(Options const& options)
      : attention_({.width = options.width,
                    .heads = options.heads,
                    .dropout = options.dropout,
                    .causal = options.causal,
                    .rotary_base = options.rotary_base}),
        attention_norm_(options.width, options.epsilon),
        feed_forward_(options.width, options.feed_forward, options.dropout, options.activation),
        feed_forward_norm_(options.width, options.epsilon),
        residual_(options.dropout, options.norm_first) {}

  /// Names "attention" and "feed_forward", and each one's norm with the suffix "_norm".
  void visit(auto&& each) {
    each("attention", attention_);
    each("attention_norm", attention_norm_);
    each("feed_forward", feed_forward_);
    each("feed_forward_norm", feed_forward_norm_);
  }

  /// Returns the transformed tokens.
  /// @shape x.tokens [rows * length, width]   @shape returns as x
  /// @throws ShapeError if x has another width
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> const& x) const {
    return forward(context, x, detail::InputUse::shared);
  }
  /// Rejects calls without the context in front, or without an input, at compile time.
  using detail::RejectedSequenceCalls::forward;

 private:
  friend class detail::LayerStack<TransformerEncoderLayer>;

  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> const& x,
                                            detail::InputUse use) const {
    auto const attended = residual_.apply(context, attention_norm_, use, x,
                                          [&](auto const& in) { return attention_.forward(context, in); });
    return residual_.apply(context, feed_forward_norm_, detail::InputUse::last, attended,
                           [&](auto const& in) { return feed_forward_.forward(context, in); });
  }

  MultiHeadAttention attention_;
  LayerNorm attention_norm_;
  FeedForward feed_forward_;
  LayerNorm feed_forward_norm_;
  detail::ResidualConnection residual_;
};

}}}  // namespace lockstep::nn
