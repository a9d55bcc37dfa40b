// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/transformer/transformer_encoder.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

LOCKSTEP_INLINE TransformerEncoder::TransformerEncoder(Options const& options)
    : layers_("TransformerEncoder", options.layers,
              {.width = options.width,
               .heads = options.heads,
               .feed_forward = options.feed_forward,
               .dropout = options.dropout,
               .causal = options.causal,
               .norm_first = options.norm_first,
               .activation = options.activation,
               .epsilon = options.epsilon,
               .rotary_base = options.rotary_base}) {}

template <class Context>
LOCKSTEP_INLINE SequenceOf<Context> TransformerEncoder::forward(Context& context, SequenceOf<Context> x) const {
  return layers_.forward(context, x);
}

// Instantiations in the library, for programs that link it.
#if defined(LOCKSTEP_COMPILED)
#define LOCKSTEP_TRANSFORMER_ENCODER(Number, Space)                                                \
  template SequenceOf<Context<Number, Space>> TransformerEncoder::forward<Context<Number, Space>>( \
      Context<Number, Space> & context, SequenceOf<Context<Number, Space>> x) const
#endif

}}}  // namespace lockstep::nn
