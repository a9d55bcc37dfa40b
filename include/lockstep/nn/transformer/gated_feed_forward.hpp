// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/linear/gated_linear.hpp>
#include <lockstep/kernel/linear/linear.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/linear/activation_option.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/random/dropout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// y = down(dropout(activation(gate(x)) * up(x))) at every slot of a sequence: the feed-forward part of T5 1.1 (with
/// gelu_tanh) and of Llama (with silu). Activation, dropout and multiplication run while the preceding matrix products
/// are in cache. Forward keeps the slopes of both factors instead of their inputs.
/// @determinism bitwise, for any number of threads
/// @source Shazeer: GLU Variants Improve Transformer (2020), GEGLU and SwiGLU
class GatedFeedForward : detail::RejectedSequenceCalls {
 public:
  /// Options of the layer: widths, dropout, bias.
  struct Options {
    Index width;                                     ///< channels of every token
    Index inner;                                     ///< channels of the gates
    double dropout = 0;                              ///< probability
    Bias bias = Bias::learned;                       ///< of the three linear layers
    ActivationOption activation = Activation::gelu;  ///< of the gates: gelu, gelu_tanh or silu
  };

  /// @throws ConfigError unless width and inner are at least 1, 0 <= dropout < 1 and the activation is one of these
  explicit GatedFeedForward(Options const& options)
      : gate_(options.width, options.inner, options.bias),
        up_(options.width, options.inner, options.bias),
        down_(options.inner, options.width, options.bias),
        dropout_(options.dropout),
        activation_(options.activation) {
    expect<ConfigError>(kernel::keeps_slope(activation_), [&] {
      return std::string("GatedFeedForward: activation ") + (activation_ == Activation::relu ? "relu" : "none") +
             "; the gates have gelu, gelu_tanh or silu: compose others of nn::Linear and nn::multiply";
    });
  }

  /// Names the maps "gate", "up" and "down".
  void visit(auto&& each) {
    each("gate", gate_);
    each("up", up_);
    each("down", down_);
  }

  /// Returns the transformed tokens.
  /// @shape x [slots, width]   @shape returns as x
  /// @throws ShapeError if x has another width
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> const& x) const;
  /// Rejects calls without the context in front, or without an input, at compile time.
  using detail::RejectedSequenceCalls::forward;

 private:
  Linear gate_, up_, down_;
  Dropout dropout_;
  Activation activation_;
};

}}}  // namespace lockstep::nn

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/nn/transformer/gated_feed_forward.ipp>
#endif
