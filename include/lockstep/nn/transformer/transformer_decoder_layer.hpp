// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/attention/attention.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/normalization/layer_norm.hpp>
#include <lockstep/nn/random/dropout.hpp>
#include <lockstep/nn/transformer/detail/residual_part.hpp>
#include <lockstep/nn/transformer/feed_forward.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Decoder layer: causal self-attention, attention to a memory, and a feed-forward part.
/// x1 = norm(x + dropout(attention(x))), x2 = norm(x1 + dropout(cross(x1, memory))),
/// y = norm(x2 + dropout(feed_forward(x2))). With `norm_first`, each norm precedes its part. Order and dropout are
/// those of torch.nn.TransformerDecoderLayer.
/// @determinism bitwise, for any number of threads
/// @source Vaswani et al.: Attention Is All You Need (2017)
class TransformerDecoderLayer {
 public:
  struct Options {
    Index width;                               ///< channels of every token and of the memory
    Index heads;                               ///< number of heads; each takes width / heads channels
    Index feed_forward;                        ///< width inside the feed-forward part
    double dropout = 0;                        ///< probability
    bool norm_first = false;                   ///< normalises the input of each part instead of the sum after it
    Activation activation = Activation::gelu;  ///< of the feed-forward part
    double epsilon = 1e-5;                     ///< of the norms
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
        dropout_(options.dropout),
        norm_first_(options.norm_first) {}

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
    return forward(context, x, memory, detail::Reader::one_of_several);
  }

 private:
  friend class TransformerDecoder;

  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> const& x,
                                            SequenceOf<Context> const& memory, detail::Reader reader) const {
    auto const part = [&](auto const& norm, auto reads, auto const& in, auto const& of) {
      return detail::residual_part(context, norm, dropout_, norm_first_, reads, in, of);
    };
    auto const attended =
        part(attention_norm_, reader, x, [&](auto const& in) { return attention_.forward(context, in); });
    auto const crossed = part(cross_attention_norm_, detail::Reader::last, attended,
                              [&](auto const& in) { return cross_attention_.forward(context, in, memory); });
    return part(feed_forward_norm_, detail::Reader::last, crossed,
                [&](auto const& in) { return feed_forward_.forward(context, in); });
  }

  MultiHeadAttention attention_;
  LayerNorm attention_norm_;
  MultiHeadAttention cross_attention_;
  LayerNorm cross_attention_norm_;
  FeedForward feed_forward_;
  LayerNorm feed_forward_norm_;
  Dropout dropout_;
  bool norm_first_;
};

}}}  // namespace lockstep::nn
