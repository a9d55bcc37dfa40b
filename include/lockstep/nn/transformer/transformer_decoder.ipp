// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/transformer/transformer_decoder.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

LOCKSTEP_INLINE TransformerDecoder::TransformerDecoder(Options const& options)
    : layers_("TransformerDecoder", options.layers,
              {.width = options.width,
               .heads = options.heads,
               .feed_forward = options.feed_forward,
               .dropout = options.dropout,
               .norm_first = options.norm_first,
               .activation = options.activation,
               .epsilon = options.epsilon}) {}

template <class Context>
LOCKSTEP_INLINE SequenceOf<Context> TransformerDecoder::forward(Context& context, SequenceOf<Context> x,
                                                                SequenceOf<Context> const& memory) const {
  return layers_.forward(context, x, memory);
}

// Instantiations in the library, for programs that link it.
#if defined(LOCKSTEP_COMPILED)
#define LOCKSTEP_TRANSFORMER_DECODER(Number, Space)                                                \
  template SequenceOf<Context<Number, Space>> TransformerDecoder::forward<Context<Number, Space>>( \
      Context<Number, Space> & context, SequenceOf<Context<Number, Space>> x,                      \
      SequenceOf<Context<Number, Space>> const& memory) const
#endif

}}}  // namespace lockstep::nn
