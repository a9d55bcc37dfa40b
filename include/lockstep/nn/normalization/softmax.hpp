// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/normalization/softmax.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/normalization/detail/softmax_by.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Softmax of each row's channels: e^x over the sum of the row's e^x, as torch.softmax along the last axis. Use it for
/// the weights of experts, or for the probabilities in your own loss. For a loss on labels use the logits instead:
/// cross_entropy.
/// @shape x and the result [rows, …, channels]
/// @determinism bitwise, for any number of threads
template <class Context, int Rank>
[[nodiscard]] VariableOf<Context, Rank> softmax(Context& context, VariableOf<Context, Rank> x) {
  return detail::softmax_by<kernel::Softmax<typename Context::Space>>(context, x);
}
/// Softmax of each token's channels.
template <class Context>
[[nodiscard]] SequenceOf<Context> softmax(Context& context, SequenceOf<Context> const& x) {
  return x.with(softmax(context, x.tokens));
}
/// Rejects calls without the context in front, or with an argument that is no activation, at compile time.
template <class... Arguments>
requires(!detail::takes_activations<1, Arguments...>) auto softmax(Arguments const&... arguments) {
  return detail::reject_call(arguments...);
}

}}}  // namespace lockstep::nn
