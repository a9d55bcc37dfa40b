// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <tuple>

#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/elementwise/detail/elementwise.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Elementwise y = factor * x. For a learned factor see LogitScale.
/// @determinism bitwise, for any number of threads
template <class Context, int Rank>
[[nodiscard]] VariableOf<Context, Rank> scale(Context& context, VariableOf<Context, Rank> x, double factor) {
  detail::Elementwise<kernel::Scale, Context, Rank> const operation(context, x, {factor});
  context.on_backward(operation.output(), std::tuple{}, [operation](Context& c) { operation.backward(c); });
  return operation.output();
}
/// Applies the function to each slot of a sequence.
template <class Context>
[[nodiscard]] SequenceOf<Context> scale(Context& context, SequenceOf<Context> const& x, double factor) {
  return x.with(scale(context, x.tokens, factor));
}
/// Rejects calls without the context in front at compile time.
auto scale(detail::NoContext auto const& first, auto const&...) { return detail::reject_call(first); }

}}}  // namespace lockstep::nn
