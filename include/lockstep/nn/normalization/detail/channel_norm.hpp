// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/activation.hpp>
#include <lockstep/nn/autograd/parameter.hpp>
#include <lockstep/nn/autograd/variable.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn::detail {

/// Base of BatchNorm and GroupNorm: a weight and a bias for each channel, and the checks of input and activation.
class ChannelNorm : RejectedCalls<2> {
 public:
  [[nodiscard]] Index channels() const noexcept { return weight_.shape[0]; }

  /// Rejects a batch's tensor or column at compile time: the layer takes a Variable.
  template <class Context, BatchTensor Input>
  VariableOf<Context, 2> forward(Context&, Input const& x) const {
    return reject_batch_tensor<VariableOf<Context, 2>>(x);
  }
  /// Rejects calls without the context in front, or without an input, at compile time.
  using RejectedCalls<2>::forward;

 protected:
  explicit ChannelNorm(Index channels)
      : weight_{{channels}, Initializer::constant(1)}, bias_{{channels}, Initializer::constant(0)} {}

  /// @throws ConfigError for an activation other than none and relu
  static void check_activation(char const* layer, kernel::Activation activation) {
    expect<ConfigError>(!kernel::keeps_slope(activation), [&] {
      std::string const name = activation == kernel::Activation::gelu        ? "gelu"
                               : activation == kernel::Activation::gelu_tanh ? "gelu_tanh"
                                                                             : "silu";
      return std::string(layer) + ": activation " + name + "; only none and relu are fused with it: apply nn::" + name +
             " after it";
    });
  }
  /// @throws ShapeError unless the last extent of x is the number of channels
  template <std::size_t Rank>
  void check_channels(char const* layer, std::array<Index, Rank> const& x) const {
    expect<ShapeError>(x.back() == channels(), [&] {
      return weight_.layer(layer) + ": the input is " + to_string(x) + " and the layer has " +
             std::to_string(channels()) + " channels; the last extent must be " + std::to_string(channels());
    });
  }

  Parameter weight_, bias_;
};

}}}  // namespace lockstep::nn::detail
