// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/kernel/linear/gated_linear.hpp>
#include <lockstep/kernel/linear/linear.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/random/dropout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// y = down(dropout(gelu(gate(x)) * up(x))) at every slot of a sequence: the feed-forward part of T5 1.1. Activation,
/// dropout and multiplication run while the preceding matrix products are in cache. Forward keeps the slopes of both
/// factors instead of their inputs.
/// @determinism bitwise, for any number of threads
/// @source Shazeer: GLU Variants Improve Transformer (2020), GEGLU
class GatedFeedForward {
 public:
  struct Options {
    Index width;                ///< channels of every token
    Index inner;                ///< channels of the gates
    double dropout = 0;         ///< probability
    Bias bias = Bias::learned;  ///< of the three linear layers
  };

  /// @throws ConfigError unless width and inner are at least 1 and 0 <= dropout < 1
  explicit GatedFeedForward(Options const& options)
      : gate_(options.width, options.inner, options.bias),
        up_(options.width, options.inner, options.bias),
        down_(options.inner, options.width, options.bias),
        dropout_(options.dropout) {}

  void visit(auto&& each) {
    each("gate", gate_);
    each("up", up_);
    each("down", down_);
  }

  /// Returns the transformed tokens.
  /// @shape x [slots, width]   @shape returns as x
  /// @throws ShapeError if x has another width
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> const& x) const {
    using Scalar = typename Context::Scalar;
    using Operand = nn::Operand<Context>;
    using Gated = kernel::GatedLinear<typename Context::Space>;
    auto const input = x.tokens;
    gate_.check(input.value.extent);
    Extents<2> const extent{input.extent(0), gate_.outputs()};
    auto const gate = context.template temporary<Scalar>(extent);
    typename Context::template View<2> slope;
    if (context.recording()) slope = context.template temporary<Scalar>(extent);
    auto const hidden = context.template variable<2>(extent);
    {
      Staging work(context);
      auto const from = work.read(input.value);
      auto const gates = work.write(gate), slopes = work.write(slope);
      kernel::Linear<typename Context::Space>::template forward<Operand>(
          context.stream(), from, gate_.weight(work), gate_.bias(work), Activation::gelu,
          dropout_.mask(context, x.layout), gates, slopes);
      Gated::template forward<Operand>(context.stream(), from, up_.weight(work), up_.bias(work), gates, slopes,
                                       work.write(hidden.value));
    }
    // Backward runs in reverse: the second closure computes the gradients that the first one takes.
    gate_.on_backward(context, hidden, [this, input, slope](Context& c) { gate_.backward(c, input, slope); });
    up_.on_backward(context, hidden, [this, input, hidden, gate, slope](Context& c) {
      Extents<1> const flat{gate.size()};
      {
        Staging back(c);
        Gated::template backward<Operand>(c.stream(), back.read(hidden.gradient()).reshape(flat),
                                          back.update(gate).reshape(flat), back.update(slope).reshape(flat));
      }
      up_.backward(c, input, gate);
    });
    return x.with(down_.forward(context, hidden));
  }

 private:
  Linear gate_, up_, down_;
  Dropout dropout_;
};

}}}  // namespace lockstep::nn
