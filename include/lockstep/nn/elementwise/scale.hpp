// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <tuple>

#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/elementwise/detail/elementwise.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Elementwise y = factor * x. For a learned factor see LogitScale.
/// @determinism bitwise, for any number of threads
template <class Context, int Rank>
[[nodiscard]] VariableOf<Context, Rank> scale(Context& context, VariableOf<Context, Rank> x, double factor) {
  detail::Elementwise<kernel::Multiple, Context, Rank> const made(context, x, {factor});
  context.on_backward(made.output(), std::tuple{}, [made](Context& c) { made.backward(c); });
  return made.output();
}
template <class Context>
[[nodiscard]] SequenceOf<Context> scale(Context& context, SequenceOf<Context> const& x, double factor) {
  return x.with(scale(context, x.tokens, factor));
}

}}}  // namespace lockstep::nn
