// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <tuple>

#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/elementwise/detail/elementwise.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Elementwise y = 1 / (1 + e^-x), as torch.sigmoid. Backward reads y; forward keeps nothing else. For a loss on labels
/// use the logits instead: binary_cross_entropy_with_logits.
/// @determinism bitwise, for any number of threads
template <class Context, int Rank>
[[nodiscard]] VariableOf<Context, Rank> sigmoid(Context& context, VariableOf<Context, Rank> x) {
  detail::Elementwise<kernel::Sigmoid, Context, Rank> const operation(context, x);
  context.on_backward(operation.output(), std::tuple{}, [operation](Context& c) { operation.backward(c); });
  return operation.output();
}
/// Applies the function to each slot of a sequence.
template <class Context>
[[nodiscard]] SequenceOf<Context> sigmoid(Context& context, SequenceOf<Context> const& x) {
  return x.with(sigmoid(context, x.tokens));
}

/// Rejects calls without the context in front, or with arguments that are no activations, at compile time.
template <class... Arguments>
requires(!detail::takes_activations<1, Arguments...>) auto sigmoid(Arguments const&... arguments) {
  return detail::reject_call(arguments...);
}

#if defined(LOCKSTEP_COMPILED)
extern template LOCKSTEP_ACTIVATION(sigmoid, float, HostSpace);
#endif

}}}  // namespace lockstep::nn
