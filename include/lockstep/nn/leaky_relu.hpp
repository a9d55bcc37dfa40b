// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <tuple>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/nn/detail/elementwise.hpp>
#include <lockstep/nn/sequence.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// y = x where x > 0 and slope * x elsewhere, as torch.nn.functional.leaky_relu; backward sees y, so nothing is kept
/// for it.
/// @determinism bitwise, for any number of threads
/// @throws ConfigError for a slope below 0, with which y does not tell the sign of x
template <class Context, int Rank>
[[nodiscard]] VariableOf<Context, Rank> leaky_relu(Context& context, VariableOf<Context, Rank> x, double slope = 0.01) {
  expect<ConfigError>(slope >= 0,
                      [&] { return "leaky_relu: the slope is " + std::to_string(slope) + "; it must be 0 or more"; });
  detail::Elementwise<kernel::LeakyRelu, Context, Rank> const made(context, x, {slope});
  context.on_backward(made.output(), std::tuple{}, [made](Context& c) { made.backward(c); });
  return made.output();
}
template <class Context>
[[nodiscard]] SequenceOf<Context> leaky_relu(Context& context, SequenceOf<Context> const& x, double slope = 0.01) {
  return x.with(leaky_relu(context, x.tokens, slope));
}

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
