// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/transformer/transformer_encoder_layer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// A stack of TransformerEncoderLayers, named "0", "1", and so on.
/// @determinism bitwise, for any number of threads
class TransformerEncoder {
 public:
  struct Options {
    Index layers;                              ///< number of layers; 0 returns the input unchanged
    Index width;                               ///< channels of every token
    Index heads;                               ///< number of heads; each takes width / heads channels
    Index feed_forward;                        ///< width inside each feed-forward part
    double dropout = 0;                        ///< probability
    bool causal = false;                       ///< token i attends only to tokens up to i
    bool norm_first = false;                   ///< as in the layer; add your own norm after the last layer
    Activation activation = Activation::gelu;  ///< of each feed-forward part
    double epsilon = 1e-5;                     ///< of the norms
    double rotary_base = 0;                    ///< base of rotary positions, for example 10000; 0: none
  };

  /// @throws ConfigError for a size below 1 (layers: below 0) or a probability outside [0, 1)
  /// @throws ShapeError unless heads divides width
  explicit TransformerEncoder(Options const& options) {
    expect<ConfigError>(options.layers >= 0, [&] {
      return "TransformerEncoder: " + std::to_string(options.layers) + " layers; it must be at least 0";
    });
    TransformerEncoderLayer const layer({.width = options.width,
                                         .heads = options.heads,
                                         .feed_forward = options.feed_forward,
                                         .dropout = options.dropout,
                                         .causal = options.causal,
                                         .norm_first = options.norm_first,
                                         .activation = options.activation,
                                         .epsilon = options.epsilon,
                                         .rotary_base = options.rotary_base});
    layers_.assign(static_cast<std::size_t>(options.layers), layer);
  }

  void visit(auto&& each) {
    for (std::size_t i = 0; i < layers_.size(); ++i) each(std::to_string(i), layers_[i]);
  }

  /// Returns the transformed tokens.
  /// @shape x.tokens [rows * length, width]   @shape returns as x
  /// @throws ShapeError if x has another width
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> x) const {
    auto reader = detail::Reader::one_of_several;  // the caller may read its x again
    for (auto const& layer : layers_) {
      x = layer.forward(context, x, reader);
      reader = detail::Reader::last;
    }
    return x;
  }

 private:
  std::vector<TransformerEncoderLayer> layers_;
};

}}}  // namespace lockstep::nn
