// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/linear/activation_option.hpp>
#include <lockstep/nn/transformer/detail/layer_stack.hpp>
#include <lockstep/nn/transformer/transformer_decoder_layer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// A stack of TransformerDecoderLayers, all with the same memory. Layers are named "0", "1", and so on.
/// @determinism bitwise, for any number of threads
class TransformerDecoder : detail::RejectedSequenceCalls {
 public:
  /// Options of all layers: number, widths, heads, dropout, place of the norms.
  struct Options {
    Index layers;                                    ///< number of layers; 0 returns the input unchanged
    Index width;                                     ///< channels of every token and of the memory
    Index heads;                                     ///< number of heads; each takes width / heads channels
    Index feed_forward;                              ///< width inside each feed-forward part
    double dropout = 0;                              ///< probability
    bool norm_first = false;                         ///< as in the layer; add your own norm after the last layer
    ActivationOption activation = Activation::gelu;  ///< of each feed-forward part
    double epsilon = 1e-5;                           ///< of the norms
  };

  /// @throws ConfigError for a size below 1 (layers: below 0) or a probability outside [0, 1)
  /// @throws ShapeError unless heads divides width
  explicit TransformerDecoder(Options const& options);

  /// Names the layers by their index, from "0".
  void visit(auto&& each) { layers_.visit(each); }

  /// Returns the transformed tokens.
  /// @shape x.tokens, memory.tokens [slots, width], of as many sequences   @shape returns as x
  /// @throws ShapeError if either has another width, or their numbers of sequences differ
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> x,
                                            SequenceOf<Context> const& memory) const;
  /// Rejects calls without the context in front, or without an input, at compile time.
  using detail::RejectedSequenceCalls::forward;

 private:
  detail::LayerStack<TransformerDecoderLayer> layers_;
};

}}}  // namespace lockstep::nn

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/nn/transformer/transformer_decoder.ipp>
#endif
