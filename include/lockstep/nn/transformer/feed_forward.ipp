// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/transformer/feed_forward.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

template <class Context>
LOCKSTEP_INLINE SequenceOf<Context> FeedForward::forward(Context& context, SequenceOf<Context> const& x) const {
  auto const dropout = dropout_.mask(context, x.layout);
  if constexpr (std::is_same_v<typename Context::Scalar, typename Context::Real>)
    if (context.recording() && activation_ == Activation::gelu && !dropout.mask.active())
      return forward_with_recompute(context, x);
  auto const input = x.tokens;
  auto const activated = first_.forward(context, input, activation_, dropout);
  auto const hidden = activated.y;
  // hidden's gradient slot holds the gradient before the activation: the second layer's backward has multiplied by
  // the slope.
  first_.on_backward(context, hidden,
                     [this, input, hidden](Context& c) { first_.backward(c, input, hidden.gradient()); });

  auto const y = second_.output(context, input.extent(0));
  Staging work(context);
  kernel::Linear<typename Context::Space>::template forward<nn::Operand<Context>>(
      context.stream(), work.read(hidden.value), second_.weight(work), second_.bias(work), work.write(y.value));
  second_.on_backward(
      context, y, [this, hidden, slope = activated.slope, y](Context& c) { second_.backward(c, hidden, y, slope); });
  return x.with(y);
}

template <class Context>
LOCKSTEP_INLINE SequenceOf<Context> FeedForward::forward_with_recompute(Context& context,
                                                                        SequenceOf<Context> const& x) const {
  using Kernel = kernel::Linear<typename Context::Space>;
  using Real = typename Context::Real;
  auto const input = x.tokens;
  first_.check(input.value.extent);
  auto const rows = input.extent(0);
  auto const before = context.template variable<2>({rows, first_.outputs()});
  auto const y = context.template variable<2>({rows, second_.outputs()});
  auto const block_rows = Kernel::rows_per_pass(context.stream(), rows);
  {
    Staging work(context);
    auto const hidden = work.temporary(Extents<2>{block_rows, first_.outputs()});
    for (Index row = 0, count; row < rows; row += count) {
      count = std::min(block_rows, rows - row);
      auto const part = [&](auto view, Index first) {
        view.data += first * view.extent[1];
        view.extent[0] = count;
        return view;
      };
      Kernel::template forward_gelu<Real>(context.stream(), part(input.value, row), first_.weight(work),
                                          first_.bias(work), part(before.value, row), part(hidden, 0));
      Kernel::template forward<Real>(context.stream(), part(hidden, 0), second_.weight(work), second_.bias(work),
                                     part(y.value, row));
    }
  }
  first_.on_backward(context, before,
                     [this, input, before](Context& c) { first_.backward(c, input, before.gradient()); });
  second_.on_backward(context, y,
                      [this, before, y](Context& c) { second_.backward_through_gelu(c, before, y.gradient()); });
  return x.with(y);
}

// Instantiations in the library, for programs that link it.
#if defined(LOCKSTEP_COMPILED)
#define LOCKSTEP_FEED_FORWARD(Number, Space)                                                \
  template SequenceOf<Context<Number, Space>> FeedForward::forward<Context<Number, Space>>( \
      Context<Number, Space> & context, SequenceOf<Context<Number, Space>> const& x) const
// Only float and double have these.
#define LOCKSTEP_FEED_FORWARD_EXACT(Number, Space)                                                         \
  template SequenceOf<Context<Number, Space>> FeedForward::forward_with_recompute<Context<Number, Space>>( \
      Context<Number, Space> & context, SequenceOf<Context<Number, Space>> const& x) const
#endif

}}}  // namespace lockstep::nn
