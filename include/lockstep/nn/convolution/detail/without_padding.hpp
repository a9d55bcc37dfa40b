// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <tuple>

#include <lockstep/kernel/sequence/clear_padding.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn::detail {

/// Returns the tokens of x with zeros in padding, or x itself if it has no padding.
/// @shape returns [x.layout.slots, x.width()]
template <class Context>
[[nodiscard]] VariableOf<Context, 2> without_padding(Context& context, SequenceOf<Context> const& x) {
  using Kernel = kernel::ClearPadding<typename Context::Space>;
  using Operand = nn::Operand<Context>;
  if (x.layout.is_ragged() || x.layout.lengths.empty()) return x.tokens;
  auto const y = context.template variable<2>(x.tokens.value.extent);
  {
    Staging work(context);
    Kernel::template run<Operand>(context.stream(), x.layout, work.read(x.tokens.value), work.write(y.value),
                                  Write::overwrite);
  }
  context.on_backward(y, std::tuple{}, [x, y](Context& c) {
    Staging back(c);
    if (auto const dx = back.gradient(x.tokens))
      Kernel::template run<Operand>(c.stream(), x.layout, back.read(y.gradient()), {dx.data, y.value.extent}, dx.write);
  });
  return y;
}

}}}  // namespace lockstep::nn::detail
