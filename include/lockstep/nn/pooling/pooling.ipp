// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/pooling/pooling.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

template <class Context>
LOCKSTEP_INLINE VariableOf<Context, 2> mean_pool(Context& context, SequenceOf<Context> const& x) {
  using Kernel = kernel::Pooling<typename Context::Space>;
  using Operand = nn::Operand<Context>;
  context.cache().expect_whole_sequences("mean_pool");
  auto y = context.template variable<2>({x.layout.rows, x.width()});
  Staging work(context);
  Kernel::template mean<Operand>(context.stream(), x.layout, work.read(x.tokens.value), work.write(y.value));
  context.on_backward(y, std::tuple{}, [x, y](Context& c) {
    Staging back(c);
    if (auto const dx = back.gradient(x.tokens))
      Kernel::template mean_backward<Operand>(c.stream(), x.layout, back.read(y.gradient()),
                                              {dx.data, x.tokens.value.extent}, dx.write);
  });
  return y;
}

// Instantiations in the library, for programs that link it.
#if defined(LOCKSTEP_COMPILED)
#define LOCKSTEP_MEAN_POOL(Number, Space)                                                   \
  template VariableOf<Context<Number, Space>, 2> mean_pool(Context<Number, Space>& context, \
                                                           SequenceOf<Context<Number, Space>> const& x)
#endif

}}}  // namespace lockstep::nn
