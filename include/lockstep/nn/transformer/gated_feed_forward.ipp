// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/transformer/gated_feed_forward.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

template <class Context>
LOCKSTEP_INLINE SequenceOf<Context> GatedFeedForward::forward(Context& context, SequenceOf<Context> const& x) const {
  using Scalar = typename Context::Scalar;
  using Operand = nn::Operand<Context>;
  using Gated = kernel::GatedLinear<typename Context::Space>;
  auto const input = x.tokens;
  gate_.check(input.value.extent);
  Extents<2> const extent{input.extent(0), gate_.outputs()};
  auto const gate = context.template temporary<Scalar>(extent);
  typename Context::template View<2> slope;
  if (context.recording()) slope = context.template temporary<Scalar>(extent);
  auto const hidden = context.template variable<2>(extent);
  {
    Staging work(context);
    auto const from = work.read(input.value);
    auto const gates = work.write(gate), slopes = work.write(slope);
    kernel::Linear<typename Context::Space>::template forward<Operand>(context.stream(), from, gate_.weight(work),
                                                                       gate_.bias(work), activation_,
                                                                       dropout_.mask(context, x.layout), gates, slopes);
    Gated::template forward<Operand>(context.stream(), from, up_.weight(work), up_.bias(work), gates, slopes,
                                     work.write(hidden.value));
  }
  // Backward runs in reverse: the second closure computes the gradients that the first one takes.
  gate_.on_backward(context, hidden, [this, input, slope](Context& c) { gate_.backward(c, input, slope); });
  up_.on_backward(context, hidden, [this, input, hidden, gate, slope](Context& c) {
    Extents<1> const flat{gate.size()};
    {
      Staging back(c);
      Gated::template backward<Operand>(c.stream(), back.read(hidden.gradient()).reshape(flat),
                                        back.update(gate).reshape(flat), back.update(slope).reshape(flat));
    }
    up_.backward(c, input, gate);
  });
  return x.with(down_.forward(context, hidden));
}

// Instantiations in the library, for programs that link it.
#if defined(LOCKSTEP_COMPILED)
#define LOCKSTEP_GATED_FEED_FORWARD(Number, Space)                                               \
  template SequenceOf<Context<Number, Space>> GatedFeedForward::forward<Context<Number, Space>>( \
      Context<Number, Space> & context, SequenceOf<Context<Number, Space>> const& x) const
#endif

}}}  // namespace lockstep::nn
