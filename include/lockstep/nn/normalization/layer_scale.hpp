// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <string>
#include <tuple>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/kernel/elementwise/channel_scale.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/parameter.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// y = weight * x, with a learned factor for each channel that starts near zero. At the end of each residual branch, it
/// lets a deep model start as nearly the identity.
/// @shape weight [channels]
/// @determinism bitwise, for any number of threads
/// @source Touvron et al.: Going deeper with Image Transformers (2021)
class LayerScale : detail::RejectedCalls<2> {
 public:
  /// @throws ConfigError unless channels is at least 1 and start is finite
  explicit LayerScale(Index channels, double start = 1e-6) : weight_{{channels}, Initializer::constant(start)} {
    expect<ConfigError>(channels >= 1 && std::isfinite(start), [&] {
      return "LayerScale: " + std::to_string(channels) + " channels and the initial value " + shortest(start) +
             "; there must be at least 1 channel, and the initial value must be finite";
    });
  }

  /// Names the parameter "weight".
  void visit(auto&& each) { each("weight", weight_); }

  /// Returns the number of factors.
  [[nodiscard]] Index channels() const noexcept { return weight_.shape[0]; }

  /// Returns weight * x.
  /// @shape x [rows, …, channels]   @shape returns as x
  /// @throws ShapeError if x has another number of channels
  template <class Context, int Rank>
  [[nodiscard]] VariableOf<Context, Rank> forward(Context& context, VariableOf<Context, Rank> x) const {
    return multiply(context, x.as_rows()).reshape(x.value.extent);
  }
  /// Applies the factors to each token.
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> const& x) const {
    return x.with(multiply(context, x.tokens));
  }
  /// Rejects calls without the context in front, or without an input, at compile time.
  using detail::RejectedCalls<2>::forward;

 private:
  template <class Context>
  VariableOf<Context, 2> multiply(Context& context, VariableOf<Context, 2> x) const {
    using Operand = nn::Operand<Context>;
    using Kernel = kernel::ChannelScale<typename Context::Space>;
    expect<ShapeError>(x.extent(1) == channels(), [&] {
      return weight_.layer("LayerScale") + ": the input is " + to_string(x.value.extent) + " and weight is [" +
             std::to_string(channels()) + "]; the input needs " + std::to_string(channels()) + " columns";
    });
    auto const y = context.template variable<2>(x.value.extent);
    {
      Staging work(context);
      Kernel::template run<Operand>(context.stream(), context.template value<1>(weight_), work.read(x.value),
                                    work.write(y.value), Write::overwrite);
    }
    context.on_backward(y, std::tie(weight_), [this, x, y](Context& c) {
      Staging back(c);
      auto const dy = back.read(y.gradient());
      auto const dweight = c.gradient(weight_);
      auto const partial = back.temporary(Extents<1>{Kernel::partial_elements(x.extent(0), channels())});
      Kernel::template factors_backward<Operand>(c.stream(), dy, back.read(c.saved_value(x)),
                                                 {dweight.data, {channels()}}, dweight.write, partial.data);
      if (auto const dx = back.gradient_in_place(x, y))
        Kernel::template run<Operand>(c.stream(), c.template value<1>(weight_), dy, {dx.data, x.value.extent},
                                      dx.write);
    });
    return y;
  }

  Parameter weight_;
};

}}}  // namespace lockstep::nn
