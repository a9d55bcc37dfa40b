// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/normalization/log_softmax.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/normalization/detail/softmax_by.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Log probabilities of each row's channels: x minus the logarithm of the sum of the row's e^x, as torch.log_softmax
/// along the last axis. Use it for the log probability of a chosen action, or for an entropy. For a loss on labels use
/// the logits instead: cross_entropy.
/// @shape x and the result [rows, …, channels]
/// @determinism bitwise, for any number of threads
template <class Context, int Rank>
[[nodiscard]] VariableOf<Context, Rank> log_softmax(Context& context, VariableOf<Context, Rank> x) {
  return detail::softmax_by<kernel::LogSoftmax<typename Context::Space>>(context, x);
}
/// Log probabilities of each token's channels.
template <class Context>
[[nodiscard]] SequenceOf<Context> log_softmax(Context& context, SequenceOf<Context> const& x) {
  return x.with(log_softmax(context, x.tokens));
}
/// Rejects calls without the context in front, or with an argument that is no activation, at compile time.
template <class... Arguments>
requires(!detail::takes_activations<1, Arguments...>) auto log_softmax(Arguments const&... arguments) {
  return detail::reject_call(arguments...);
}

}}}  // namespace lockstep::nn
