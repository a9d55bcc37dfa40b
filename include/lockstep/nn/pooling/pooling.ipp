// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include <lockstep/nn/pooling/pooling.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

namespace detail {
template <class Context>
[[nodiscard]] VariableOf<Context, 2> reduced_tokens(Context& context, SequenceOf<Context> const& x,
                                                    kernel::TokenReduction reduction) {
  auto y = context.template variable<2>({x.layout.rows, x.width()});
  Staging work(context);
  kernel::Pooling<typename Context::Space>::template reduce<Operand<Context>>(
      context.stream(), x.layout, reduction, work.read(x.tokens.value), work.write(y.value));
  return y;
}
template <class Context>
void reduced_tokens_backward(Context& context, SequenceOf<Context> const& x, VariableOf<Context, 2> y,
                             kernel::TokenReduction reduction) {
  Staging work(context);
  if (auto const dx = work.gradient(x.tokens))
    kernel::Pooling<typename Context::Space>::template reduce_backward<Operand<Context>>(
        context.stream(), x.layout, reduction, work.read(y.gradient()), {dx.data, x.tokens.value.extent}, dx.write);
}
}  // namespace detail

template <class Context>
LOCKSTEP_INLINE VariableOf<Context, 2> mean_pool(Context& context, SequenceOf<Context> const& x) {
  context.cache().expect_whole_sequences("mean_pool");
  auto const y = detail::reduced_tokens(context, x, kernel::TokenReduction::mean);
  context.on_backward(y, std::tuple{},
                      [x, y](Context& c) { detail::reduced_tokens_backward(c, x, y, kernel::TokenReduction::mean); });
  return y;
}

template <class Context>
LOCKSTEP_INLINE VariableOf<Context, 2> sum_pool(Context& context, SequenceOf<Context> const& x) {
  context.cache().expect_whole_sequences("sum_pool");
  auto const y = detail::reduced_tokens(context, x, kernel::TokenReduction::sum);
  context.on_backward(y, std::tuple{},
                      [x, y](Context& c) { detail::reduced_tokens_backward(c, x, y, kernel::TokenReduction::sum); });
  return y;
}

template <class Context>
LOCKSTEP_INLINE VariableOf<Context, 2> max_pool(Context& context, SequenceOf<Context> const& x) {
  using Kernel = kernel::Pooling<typename Context::Space>;
  using Operand = nn::Operand<Context>;
  context.cache().expect_whole_sequences("max_pool");
  auto const y = context.template variable<2>({x.layout.rows, x.width()});
  TensorView<std::int32_t, 2, typename Context::Space> argmax;
  if (context.recording()) argmax = context.template temporary<std::int32_t>(y.value.extent);
  Staging work(context);
  Kernel::template max<Operand>(context.stream(), x.layout, work.read(x.tokens.value), work.write(y.value), argmax);
  context.on_backward(y, std::tuple{}, [x, y, argmax](Context& c) {
    Staging back(c);
    if (auto const dx = back.gradient(x.tokens))
      Kernel::template max_backward<Operand>(c.stream(), x.layout, back.read(y.gradient()), argmax,
                                             {dx.data, x.tokens.value.extent}, dx.write);
  });
  return y;
}

// Instantiations in the library, for programs that link it.
#if defined(LOCKSTEP_COMPILED)
#define LOCKSTEP_REDUCING_POOLS(Number, Space)                                                           \
  template VariableOf<Context<Number, Space>, 2> mean_pool(Context<Number, Space>& context,              \
                                                           SequenceOf<Context<Number, Space>> const& x); \
  template VariableOf<Context<Number, Space>, 2> sum_pool(Context<Number, Space>& context,               \
                                                          SequenceOf<Context<Number, Space>> const& x);  \
  template VariableOf<Context<Number, Space>, 2> max_pool(Context<Number, Space>& context,               \
                                                          SequenceOf<Context<Number, Space>> const& x)
#endif

}}}  // namespace lockstep::nn
