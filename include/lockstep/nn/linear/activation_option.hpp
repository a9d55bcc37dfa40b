// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <type_traits>

#include <lockstep/kernel/activation.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

using kernel::Activation;

/// Activation that a layer takes as an argument or an option. Converts from and to Activation; rejects anything else at
/// compile time, such as a string, a function of activations or a layer.
class ActivationOption {
 public:
  /// Holds the activation.
  constexpr ActivationOption(Activation activation) noexcept : activation_(activation) {}
  /// Rejects a string, a layer or a rule.
  template <class Other>
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
    static_assert(!std::is_same_v<Other, Other>,
                  "Lockstep: a layer's activation is nn::Activation::gelu, relu or none, and no string, function or "
                  "layer; call others on the layer's result: nn::silu(context, x)");
  }

  Activation activation_;
};

}}}  // namespace lockstep::nn
