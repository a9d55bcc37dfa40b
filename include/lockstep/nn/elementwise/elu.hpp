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

/// Elementwise y = x for x > 0 and alpha (e^x - 1) otherwise, as torch.nn.functional.elu. Backward reads y; forward
/// keeps nothing else.
/// @determinism bitwise, for any number of threads
/// @throws ConfigError for an alpha below 0, because y then does not determine the sign of x, and for one that is not
/// finite as Context::Real
template <class Context, int Rank>
[[nodiscard]] VariableOf<Context, Rank> elu(Context& context, VariableOf<Context, Rank> x, double alpha = 1) {
  expect<ConfigError>(alpha >= 0 && alpha <= double{std::numeric_limits<typename Context::Real>::max()}, [&] {
    return "elu: alpha is " + shortest(alpha) +
           "; it must be 0 or more, and finite when rounded to the model's type (float32 by default)";
  });
  detail::Elementwise<kernel::Elu, Context, Rank> const operation(context, x, {alpha});
  context.on_backward(operation.output(), std::tuple{}, [operation](Context& c) { operation.backward(c); });
  return operation.output();
}
/// Applies the function to each slot of a sequence.
template <class Context>
[[nodiscard]] SequenceOf<Context> elu(Context& context, SequenceOf<Context> const& x, double alpha = 1) {
  return x.with(elu(context, x.tokens, alpha));
}

/// Rejects calls without the context in front, or with arguments that are no activations, at compile time.
template <class... Arguments>
requires(!detail::takes_activations<1, Arguments...>) auto elu(Arguments const&... arguments) {
  return detail::reject_call(arguments...);
}

}}}  // namespace lockstep::nn
