// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>
#include <type_traits>

#include <lockstep/kernel/activation.hpp>
#include <lockstep/nn/autograd/model.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

using kernel::Activation;

namespace detail {
/// A string, a rule of nn::elementwise or a layer.
template <class Value>
concept NamesActivation = std::is_convertible_v<Value const&, std::string_view> || requires {
  Value::name;
} || requires(Value& layer, AnyVisitor each) {
  layer.visit(each);
};
}  // namespace detail

/// Activation that a layer takes as an argument or an option. Converts from and to Activation; rejects a string, a
/// function of activations, a rule or a layer at compile time.
class ActivationOption {
 public:
  /// Holds the activation.
  constexpr ActivationOption(Activation activation) noexcept : activation_(activation) {}
  /// Rejects a string, a rule or a layer.
  template <detail::NamesActivation Other>
  ActivationOption(Other const&) : activation_() {
    reject<Other>();
  }
  /// Rejects the name of functions such as nn::gelu.
  template <class Name = detail::FunctionName>
  ActivationOption(Name (*)(Name const&)) : activation_() {
    reject<Name>();
  }
  /// Returns the activation.
  constexpr operator Activation() const noexcept { return activation_; }

 private:
  template <class Other>
  static void reject() {
    static_assert(
        !std::is_same_v<Other, Other>,
        "Lockstep: a layer's activation is nn::Activation::gelu, gelu_tanh, silu, relu or none, and no string, "
        "function or layer; call others on the layer's result: nn::mish(context, x)");
  }

  Activation activation_;
};

}}}  // namespace lockstep::nn
