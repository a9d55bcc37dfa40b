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
template SequenceOf<Context<float, HostSpace>> TransformerEncoder::forward<Context<float, HostSpace>>(
    Context<float, HostSpace>& context, SequenceOf<Context<float, HostSpace>> x) const;
template SequenceOf<Context<double, HostSpace>> TransformerEncoder::forward<Context<double, HostSpace>>(
    Context<double, HostSpace>& context, SequenceOf<Context<double, HostSpace>> x) const;
template SequenceOf<Context<bfloat16, HostSpace>> TransformerEncoder::forward<Context<bfloat16, HostSpace>>(
    Context<bfloat16, HostSpace>& context, SequenceOf<Context<bfloat16, HostSpace>> x) const;
template SequenceOf<Context<float16, HostSpace>> TransformerEncoder::forward<Context<float16, HostSpace>>(
    Context<float16, HostSpace>& context, SequenceOf<Context<float16, HostSpace>> x) const;
#endif

}}}  // namespace lockstep::nn
