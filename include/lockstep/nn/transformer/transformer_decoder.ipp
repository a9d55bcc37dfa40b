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
template SequenceOf<Context<float, HostSpace>> TransformerDecoder::forward<Context<float, HostSpace>>(
    Context<float, HostSpace>& context, SequenceOf<Context<float, HostSpace>> x,
    SequenceOf<Context<float, HostSpace>> const& memory) const;
template SequenceOf<Context<double, HostSpace>> TransformerDecoder::forward<Context<double, HostSpace>>(
    Context<double, HostSpace>& context, SequenceOf<Context<double, HostSpace>> x,
    SequenceOf<Context<double, HostSpace>> const& memory) const;
template SequenceOf<Context<bfloat16, HostSpace>> TransformerDecoder::forward<Context<bfloat16, HostSpace>>(
    Context<bfloat16, HostSpace>& context, SequenceOf<Context<bfloat16, HostSpace>> x,
    SequenceOf<Context<bfloat16, HostSpace>> const& memory) const;
template SequenceOf<Context<float16, HostSpace>> TransformerDecoder::forward<Context<float16, HostSpace>>(
    Context<float16, HostSpace>& context, SequenceOf<Context<float16, HostSpace>> x,
    SequenceOf<Context<float16, HostSpace>> const& memory) const;
#endif

}}}  // namespace lockstep::nn
