// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <tuple>
#include <type_traits>

#include <lockstep/kernel/activation_rules.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/elementwise/detail/elementwise.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

namespace detail {

/// A rule whose slope follows from its value.
template <class Rule>
concept ActivationByValue = requires(Rule const& rule, float x) {
  { rule(x) } -> std::same_as<float>;
  { rule.backward(x, x) } -> std::same_as<float>;
};

/// Returns the rule in the form that kernels take.
template <class Rule>
[[nodiscard]] auto activation_of(Rule const& rule) {
  static_assert(kernel::ActivationWithSlope<Rule> || ActivationByValue<Rule>,
                "Lockstep: the rule of nn::elementwise has a template operator()(T x) const that returns "
                "kernel::ActivationAt<T>{value, slope}; or it returns the value, a T, and backward(dy, y) "
                "the gradient");
  static_assert(
      requires {
        { Rule::name } -> std::convertible_to<char const*>;
      },
      "Lockstep: the rule of nn::elementwise says its name: static constexpr char const* name");
  static_assert(std::is_trivially_copyable_v<Rule>,
                "Lockstep: the rule of nn::elementwise holds numbers and views only");
  if constexpr (kernel::ActivationWithSlope<Rule>)
    return kernel::ActivationAdapter<Rule>{rule};
  else
    return rule;
}

}  // namespace detail

/// Activation y = rule(x), elementwise. `rule` is a rule of kernel/activation_rules.hpp or your own: an object with a
/// `name` and an operator that returns value and slope at x as kernel::ActivationAt<Element>. While recording, forward
/// then keeps the slopes. If the slope follows from y, the operator may return the value alone, and `backward(dy, y)`
/// returns the gradient.
/// @determinism bitwise, for any number of threads
template <class Context, class Rule, int Rank>
[[nodiscard]] VariableOf<Context, Rank> elementwise(Context& context, Rule const& rule, VariableOf<Context, Rank> x) {
  auto const activation = detail::activation_of(rule);
  detail::Elementwise<std::remove_const_t<decltype(activation)>, Context, Rank> const operation(context, x, activation);
  context.on_backward(operation.output(), std::tuple{}, [operation](Context& c) { operation.backward(c); });
  return operation.output();
}
/// Applies the function to each slot of a sequence.
template <class Context, class Rule>
[[nodiscard]] SequenceOf<Context> elementwise(Context& context, Rule const& rule, SequenceOf<Context> const& x) {
  return x.with(elementwise(context, rule, x.tokens));
}

}}}  // namespace lockstep::nn
