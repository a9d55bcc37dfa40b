// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/nn/context.hpp>
#include <lockstep/nn/sequence.hpp>
#include <lockstep/nn/transformer_decoder_layer.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// TransformerDecoderLayers one after the other, each with the same memory, named "0", "1", and so on.
/// @determinism bitwise, for any number of threads
class TransformerDecoder {
 public:
  struct Options {
    Index layers;             ///< 0 leaves its input as it is
    Index width;              ///< channels of every token, those of the memory too
    Index heads;              ///< share the width equally
    Index feed_forward;       ///< width inside each feed-forward part
    double dropout = 0;       ///< probability
    bool norm_first = false;  ///< as in the layer; a norm behind the last layer is then the model's own
    Activation activation = Activation::gelu;  ///< of each feed-forward part
    double epsilon = 1e-5;                     ///< of the norms
  };

  /// @throws ConfigError for a size below 1 (layers: below 0) or a probability outside [0, 1)
  /// @throws ShapeError unless heads divides width
  explicit TransformerDecoder(Options const& options) {
    expect<ConfigError>(options.layers >= 0, [&] {
      return "TransformerDecoder: " + std::to_string(options.layers) + " layers; there cannot be fewer than 0";
    });
    TransformerDecoderLayer const layer({.width = options.width,
                                         .heads = options.heads,
                                         .feed_forward = options.feed_forward,
                                         .dropout = options.dropout,
                                         .norm_first = options.norm_first,
                                         .activation = options.activation,
                                         .epsilon = options.epsilon});
    layers_.assign(static_cast<std::size_t>(options.layers), layer);
  }

  void visit(auto&& each) {
    for (std::size_t i = 0; i < layers_.size(); ++i) each(std::to_string(i), layers_[i]);
  }

  /// @shape x.tokens, memory.tokens [slots, width], of as many sequences   @shape returns as x
  /// @throws ShapeError when either has another width, or they have another number of sequences
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> x,
                                            SequenceOf<Context> const& memory) const {
    auto reader = detail::Reader::one_of_several;  // of what the caller has, who may read it once more
    for (auto const& layer : layers_) {
      x = layer.forward(context, x, memory, reader);
      reader = detail::Reader::last;
    }
    return x;
  }

 private:
  std::vector<TransformerDecoderLayer> layers_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
