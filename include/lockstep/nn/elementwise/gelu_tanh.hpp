// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <tuple>

#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/elementwise/detail/elementwise.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Gaussian error linear unit by the hyperbolic tangent, as torch.nn.functional.gelu with approximate="tanh", for GPT-2
/// and models converted from JAX. While recording, forward also keeps the slopes for backward.
/// @determinism bitwise, for any number of threads
template <class Context, int Rank>
[[nodiscard]] VariableOf<Context, Rank> gelu_tanh(Context& context, VariableOf<Context, Rank> x) {
  detail::Elementwise<kernel::GeluTanh, Context, Rank> const operation(context, x);
  context.on_backward(operation.output(), std::tuple{}, [operation](Context& c) { operation.backward(c); });
  return operation.output();
}
/// Applies the function to each slot of a sequence.
template <class Context>
[[nodiscard]] SequenceOf<Context> gelu_tanh(Context& context, SequenceOf<Context> const& x) {
  return x.with(gelu_tanh(context, x.tokens));
}

/// Rejects calls without the context in front, or with arguments that are no activations, at compile time.
template <class... Arguments>
requires(!detail::takes_activations<1, Arguments...>) auto gelu_tanh(Arguments const&... arguments) {
  return detail::reject_call(arguments...);
}

}}}  // namespace lockstep::nn
