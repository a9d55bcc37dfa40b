// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <tuple>

#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/staging.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn::detail {

/// Applies a kernel whose backward pass reads the result, not x: kernel::Softmax or kernel::LogSoftmax.
/// @shape x and the result [rows, …, channels]
template <class Kernel, class Context, int Rank>
[[nodiscard]] VariableOf<Context, Rank> softmax_by(Context& context, VariableOf<Context, Rank> x) {
  using Operand = nn::Operand<Context>;
  auto const y = context.template variable<Rank>(x.value.extent);
  {
    Staging work(context);
    Kernel::template forward<Operand>(context.stream(), work.read(x.as_rows().value), work.write(y.as_rows().value));
  }
  context.on_backward(y, std::tuple{}, [x, y](Context& c) {
    Staging back(c);
    auto const dy = back.read(y.as_rows().gradient());
    if (auto const dx = back.gradient(x))
      Kernel::template backward<Operand>(c.stream(), dy, back.read(y.as_rows().value),
                                         {dx.data, x.as_rows().value.extent}, dx.write);
  });
  return y;
}

}}}  // namespace lockstep::nn::detail
