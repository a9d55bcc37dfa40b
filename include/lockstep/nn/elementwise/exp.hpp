// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <tuple>

#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/elementwise/detail/elementwise.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Elementwise y = e^x, as torch.exp. Backward reads y; forward keeps nothing else. For floats, y is 0 below -87.33 and
/// infinity above 88.
/// @determinism bitwise, for any number of threads
template <class Context, int Rank>
[[nodiscard]] VariableOf<Context, Rank> exp(Context& context, VariableOf<Context, Rank> x) {
  detail::Elementwise<kernel::Exp, Context, Rank> const operation(context, x);
  context.on_backward(operation.output(), std::tuple{}, [operation](Context& c) { operation.backward(c); });
  return operation.output();
}
/// Applies the function to each slot of a sequence.
template <class Context>
[[nodiscard]] SequenceOf<Context> exp(Context& context, SequenceOf<Context> const& x) {
  return x.with(exp(context, x.tokens));
}
/// Rejects calls without the context in front at compile time.
auto exp(detail::NoContext auto const& first, auto const&...) { return detail::reject_call(first); }

}}}  // namespace lockstep::nn
