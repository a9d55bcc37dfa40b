// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <limits>
#include <string>
#include <tuple>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/elementwise/detail/elementwise.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Elementwise y = x for x > 0 and slope * x otherwise, as torch.nn.functional.leaky_relu. Backward reads y; forward
/// keeps nothing else.
/// @determinism bitwise, for any number of threads
/// @throws ConfigError for a slope below 0, because y then does not determine the sign of x, and for one that is not
/// finite as Context::Real
template <class Context, int Rank>
[[nodiscard]] VariableOf<Context, Rank> leaky_relu(Context& context, VariableOf<Context, Rank> x, double slope = 0.01) {
  expect<ConfigError>(slope >= 0 && slope <= double{std::numeric_limits<typename Context::Real>::max()}, [&] {
    return "leaky_relu: the slope is " + shortest(slope) +
           "; it must be 0 or more, and finite when rounded to the model's type (float32 by default)";
  });
  detail::Elementwise<kernel::LeakyRelu, Context, Rank> const operation(context, x, {slope});
  context.on_backward(operation.output(), std::tuple{}, [operation](Context& c) { operation.backward(c); });
  return operation.output();
}
/// Applies the function to each slot of a sequence.
template <class Context>
[[nodiscard]] SequenceOf<Context> leaky_relu(Context& context, SequenceOf<Context> const& x, double slope = 0.01) {
  return x.with(leaky_relu(context, x.tokens, slope));
}

/// Rejects calls without the context in front, or with arguments that are no activations, at compile time.
template <class... Arguments>
requires(!detail::takes_activations<1, Arguments...>) auto leaky_relu(Arguments const&... arguments) {
  return detail::reject_call(arguments...);
}

}}}  // namespace lockstep::nn
