// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <type_traits>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/memory/space.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/variable.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {
namespace detail {

template <class Input>
inline constexpr bool is_tensor = false;
template <class Element, int Rank, class Space>
inline constexpr bool is_tensor<TensorView<Element, Rank, Space>> = true;

/// A batch's tensor or column, passed to a layer that needs an activation.
template <class Input>
concept BatchTensor = is_tensor<Input> || requires(Input const& x) {
  x.values;
};

/// A whole batch, passed to a layer because a block's forward was mistaken for a model's forward.
template <class Input>
concept WholeBatch = requires(Input const& x) {
  x.rows();
  x.positions();
};

/// Rejects a batch's tensor or column at compile time. Never returns.
template <class Variable, class Input>
[[nodiscard]] Variable reject_batch_tensor(Input const&) {
  static_assert(!std::is_same_v<Input, Input>,
                "Lockstep: a layer takes a Variable, and this is a tensor or a column of a batch: "
                "context.input(column.values) makes a Variable of it");
  return {};
}

/// Whether an argument is a context, the first argument of layers, activations and losses.
template <class First>
inline constexpr bool is_context = requires(First& context) {
  context.recording();
};
template <class First>
concept IsContext = is_context<First>;
template <class First>
concept NoContext = !is_context<First>;

/// Whether an argument is a Variable or a Sequence.
template <class Input>
inline constexpr bool is_activation = false;
template <class Scalar, int Rank, class Space>
inline constexpr bool is_activation<Variable<Scalar, Rank, Space>> = true;
template <class Scalar, class Space>
inline constexpr bool is_activation<Sequence<Scalar, Space>> = true;

/// A layer's result: a Variable or a Sequence.
template <class Input>
concept LayerOutput = requires(Input const& x) {
  x.value;
}
|| requires(Input const& x) { x.tokens; };

/// Whether a function of `Count` activations got a context in front and these activations behind it.
template <int Count, class... Arguments>
inline constexpr bool takes_activations = false;
template <class First, class Input, class... Others>
inline constexpr bool takes_activations<1, First, Input, Others...> = is_context<First>&& LayerOutput<Input>;
template <class First, class Input, class Second, class... Others>
inline constexpr bool takes_activations<2, First, Input, Second, Others...> =
    is_context<First>&& LayerOutput<Input>&& LayerOutput<Second>;

/// Returns the first argument that is a Variable or a Sequence, or else an empty Variable.
template <class First, class... Others>
[[nodiscard]] auto first_activation(First const& first, Others const&... others) {
  if constexpr (is_activation<First>)
    return first;
  else if constexpr (sizeof...(Others) > 0)
    return first_activation(others...);
  else
    return Variable<float, 2, HostSpace>{};
}

/// Argument type with which a parameter of an overload set's type, such as nn::gelu's, is found: the only overload that
/// takes it is the one that rejects calls.
struct FunctionName {};

/// Rejects a call at compile time that lacks the context in front, or activations behind it. Never returns.
template <class First, class... Others>
[[nodiscard]] auto reject_call(First const& first, Others const&... others) {
  constexpr bool is_name = std::is_same_v<First, FunctionName>;  // the parameter's type has a message of its own
  static_assert(is_name || is_context<First>,
                "Lockstep: layers, activations and losses take the context first: layer.forward(context, x), "
                "nn::gelu(context, x), nn::cross_entropy(context, logits, labels)");
  static_assert(!is_context<First>,
                "Lockstep: functions of activations take Variables or Sequences behind the context. For a batch's "
                "column of numbers pass context.input(column), for one of sequences nn::sequence_of");
  if constexpr (is_name)
    return first;
  else
    return first_activation(first, others...);
}

/// Rejects a layer's call with nothing behind the context at compile time. Never returns.
template <class Output>
[[nodiscard]] Output reject_missing_input() {
  static_assert(!std::is_same_v<Output, Output>,
                "Lockstep: layers take an input behind the context, a Variable or a Sequence: layer.forward(context, "
                "x)");
  return {};
}

/// Base of layers. Rejects calls of `forward` without the context in front, or without an input, at compile time.
/// @tparam Rank of the Variable that the layer returns; 0: it returns a Sequence
template <int Rank>
struct RejectedCalls {
  template <class Context>
  using Output = std::conditional_t<Rank == 0, SequenceOf<Context>, VariableOf<Context, Rank>>;

  auto forward(NoContext auto const& first, auto const&...) const { return reject_call(first); }
  template <IsContext Context>
  Output<Context> forward(Context const&) const {
    return reject_missing_input<Output<Context>>();
  }
};
using RejectedSequenceCalls = RejectedCalls<0>;

/// Rejects a loss without labels or a target at compile time. Never returns.
template <class Output>
[[nodiscard]] Output reject_missing_target() {
  static_assert(!std::is_same_v<Output, Output>,
                "Lockstep: losses take a column of the batch behind the prediction: nn::cross_entropy(context, logits, "
                "batch[&Sample::label]), nn::mean_squared_error(context, x, batch[&Sample::target])");
  return {};
}

/// An argument that is no Sequence, passed to a layer over tokens.
template <class Input, class Context>
concept NotSequence = !std::is_convertible_v<Input const&, SequenceOf<Context>>;

/// Rejects an argument that is no Sequence at compile time. Never returns.
template <class Context, class Input>
[[nodiscard]] SequenceOf<Context> reject_non_sequence(Input const&) {
  static_assert(!std::is_same_v<Input, Input>,
                "Lockstep: a layer over tokens takes a Sequence: nn::sequence_of makes one of a batch's column, "
                "nn::FusedEmbedding of ids, and nn::Conv1d of another");
  return {};
}

/// An activation and a number, in either order.
template <class Left, class Right>
concept ActivationAndNumber = (is_activation<Left> && std::is_arithmetic_v<Right>) ||
                              (std::is_arithmetic_v<Left> && is_activation<Right>);

/// Rejects arithmetic of activations and numbers at compile time. Never returns.
template <class... Operands>
[[nodiscard]] auto reject_arithmetic(Operands const&... operands) {
  static_assert(sizeof...(Operands) == 0,
                "Lockstep: an activation is multiplied by a number by nn::scale(context, x, factor); "
                "nn::elementwise(context, rule, x) computes any other function of its elements");
  return first_activation(operands...);
}

}  // namespace detail

template <class Left, class Right>
requires detail::ActivationAndNumber<Left, Right>
auto operator+(Left const& x, Right const& y) { return detail::reject_arithmetic(x, y); }
template <class Left, class Right>
requires detail::ActivationAndNumber<Left, Right>
auto operator-(Left const& x, Right const& y) { return detail::reject_arithmetic(x, y); }
template <class Left, class Right>
requires detail::ActivationAndNumber<Left, Right>
auto operator*(Left const& x, Right const& y) { return detail::reject_arithmetic(x, y); }
template <class Left, class Right>
requires detail::ActivationAndNumber<Left, Right>
auto operator/(Left const& x, Right const& y) { return detail::reject_arithmetic(x, y); }
template <class Operand>
requires detail::is_activation<Operand>
auto operator-(Operand const& x) { return detail::reject_arithmetic(x); }

}}}  // namespace lockstep::nn
