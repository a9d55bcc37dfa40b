// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <tuple>

#include <lockstep/kernel/normalization/softmax.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Softmax of each row's channels: e^x over the sum of the row's e^x, as torch.softmax along the last axis. Use it for
/// the weights of experts, or for the probabilities in your own loss. For a loss on labels use the logits instead:
/// cross_entropy.
/// @shape x and the result [rows, …, channels]
/// @determinism bitwise, for any number of threads
template <class Context, int Rank>
[[nodiscard]] VariableOf<Context, Rank> softmax(Context& context, VariableOf<Context, Rank> x) {
  using Operand = nn::Operand<Context>;
  using Kernel = kernel::Softmax<typename Context::Space>;
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
/// Softmax of each token's channels.
template <class Context>
[[nodiscard]] SequenceOf<Context> softmax(Context& context, SequenceOf<Context> const& x) {
  return x.with(softmax(context, x.tokens));
}
/// Rejects calls without the context in front at compile time.
auto softmax(detail::NoContext auto const& first, auto const&...) { return detail::reject_call(first); }

}}}  // namespace lockstep::nn
