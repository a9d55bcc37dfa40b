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

/// Decoder layer: causal self-attention, attention to a memory, and a feed-forward part.
/// x1 = norm(x + dropout(attention(x))), x2 = norm(x1 + dropout(cross(x1, memory))),
/// y = norm(x2 + dropout(feed_forward(x2))). With `norm_first`, each norm precedes its part. Order and dropout are
/// those of torch.nn.TransformerDecoderLayer.
/// @determinism bitwise, for any number of threads
/// @source Vaswani et al.: Attention Is All You Need (2017)
class TransformerDecoderLayer : detail::RejectedSequenceCalls {
 public:
  /// Options of one layer: widths, heads, dropout, place of the norms.
  struct Options {
    Index width;                                     ///< channels of every token and of the memory
    Index heads;                                     ///< number of heads; each takes width / heads channels
    Index feed_forward;                              ///< width inside the feed-forward part
    double dropout = 0;                              ///< probability
    bool norm_first = false;                         ///< normalizes the input of each part instead of the sum after it
    ActivationOption activation = Activation::gelu;  ///< of the feed-forward part
    double epsilon = 1e-5;                           ///< of the norms
  };

  /// @throws ConfigError for a size below 1 or a probability outside [0, 1)   @throws ShapeError unless heads divides
  /// width
  explicit TransformerDecoderLayer(Options const& options)
      : attention_({.width = options.width, .heads = options.heads, .dropout = options.dropout, .causal = true}),
        attention_norm_(options.width, options.epsilon),
        cross_attention_({.width = options.width, .heads = options.heads, .dropout = options.dropout}),
        cross_attention_norm_(options.width, options.epsilon),
        feed_forward_(options.width, options.feed_forward, options.dropout, options.activation),
        feed_forward_norm_(options.width, options.epsilon),
        residual_(options.dropout, options.norm_first) {}

  /// Names "attention", "cross_attention" and "feed_forward", and each one's norm with the suffix "_norm".
  void visit(auto&& each) {
    each("attention", attention_);
    each("attention_norm", attention_norm_);
    each("cross_attention", cross_attention_);
    each("cross_attention_norm", cross_attention_norm_);
    each("feed_forward", feed_forward_);
    each("feed_forward_norm", feed_forward_norm_);
  }

  /// Returns the transformed tokens.
  /// @shape x.tokens, memory.tokens [slots, width], of as many sequences   @shape returns as x
  /// @throws ShapeError if either has another width, or their numbers of sequences differ
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> const& x,
                                            SequenceOf<Context> const& memory) const {
    return forward(context, x, memory, detail::InputUse::shared);
  }
  /// Rejects calls without the context in front, or without an input, at compile time.
  using detail::RejectedSequenceCalls::forward;

 private:
  friend class detail::LayerStack<TransformerDecoderLayer>;

  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> const& x,
                                            SequenceOf<Context> const& memory, detail::InputUse use) const {
    auto const attended = residual_.apply(context, attention_norm_, use, x,
                                          [&](auto const& in) { return attention_.forward(context, in); });
    auto const crossed = residual_.apply(context, cross_attention_norm_, detail::InputUse::last, attended,
                                         [&](auto const& in) { return cross_attention_.forward(context, in, memory); });
    return residual_.apply(context, feed_forward_norm_, detail::InputUse::last, crossed,
                           [&](auto const& in) { return feed_forward_.forward(context, in); });
  }

  MultiHeadAttention attention_;
  LayerNorm attention_norm_;
  MultiHeadAttention cross_attention_;
  LayerNorm cross_attention_norm_;
  FeedForward feed_forward_;
  LayerNorm feed_forward_norm_;
  detail::ResidualConnection residual_;
};

}}}  // namespace lockstep::nn
