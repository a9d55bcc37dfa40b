// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <limits>
#include <tuple>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/elementwise/detail/elementwise.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Elementwise y = log(1 + e^(beta x)) / beta, as torch.nn.functional.softplus. While recording, forward also keeps the
/// slopes for backward.
/// @determinism bitwise, for any number of threads
/// @throws ConfigError unless beta and 1 / beta are above 0 and finite, also when rounded to Context::Real
template <class Context, int Rank>
[[nodiscard]] VariableOf<Context, Rank> softplus(Context& context, VariableOf<Context, Rank> x, double beta = 1) {
  constexpr double largest = std::numeric_limits<typename Context::Real>::max();
  expect<ConfigError>(beta >= 1 / largest && beta <= largest, [&] {
    return "softplus: beta is " + shortest(beta) +
           "; beta and 1 / beta must be above 0 and finite, also when rounded to the model's type (float32 by default)";
  });
  detail::Elementwise<kernel::Softplus, Context, Rank> const operation(context, x, {beta});
  context.on_backward(operation.output(), std::tuple{}, [operation](Context& c) { operation.backward(c); });
  return operation.output();
}
/// Applies the function to each slot of a sequence.
template <class Context>
[[nodiscard]] SequenceOf<Context> softplus(Context& context, SequenceOf<Context> const& x, double beta = 1) {
  return x.with(softplus(context, x.tokens, beta));
}

/// Rejects calls without the context in front, or with arguments that are no activations, at compile time.
template <class... Arguments>
requires(!detail::takes_activations<1, Arguments...>) auto softplus(Arguments const&... arguments) {
  return detail::reject_call(arguments...);
}

}}}  // namespace lockstep::nn
