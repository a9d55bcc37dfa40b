// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/linear/activation_option.hpp>
#include <lockstep/nn/transformer/detail/layer_stack.hpp>
#include <lockstep/nn/transformer/transformer_encoder_layer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// A stack of TransformerEncoderLayers, named "0", "1", and so on.
/// @determinism bitwise, for any number of threads
class TransformerEncoder : detail::RejectedSequenceCalls {
 public:
  /// Options of all layers: number, widths, heads, mask, dropout, place of the norms.
  struct Options {
    Index layers;                                    ///< number of layers; 0 returns the input unchanged
    Index width;                                     ///< channels of every token
    Index heads;                                     ///< number of heads; each takes width / heads channels
    Index feed_forward;                              ///< width inside each feed-forward part
    double dropout = 0;                              ///< probability
    bool causal = false;                             ///< token i attends only to tokens up to i
    bool norm_first = false;                         ///< as in the layer; add your own norm after the last layer
    ActivationOption activation = Activation::gelu;  ///< of each feed-forward part
    double epsilon = 1e-5;                           ///< of the norms
    double rotary_base = 0;                          ///< base of rotary positions, for example 10000; 0: none
  };

  /// @throws ConfigError for a size below 1 (layers: below 0) or a probability outside [0, 1)
  /// @throws ShapeError unless heads divides width
  explicit TransformerEncoder(Options const& options);

  /// Names the layers by their index, from "0".
  void visit(auto&& each) { layers_.visit(each); }

  /// Returns the transformed tokens.
  /// @shape x.tokens [rows * length, width]   @shape returns as x
  /// @throws ShapeError if x has another width
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> x) const;
  /// Rejects calls without the context in front, or without an input, at compile time.
  using detail::RejectedSequenceCalls::forward;

 private:
  detail::LayerStack<TransformerEncoderLayer> layers_;
};

}}}  // namespace lockstep::nn

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/nn/transformer/transformer_encoder.ipp>
#endif
