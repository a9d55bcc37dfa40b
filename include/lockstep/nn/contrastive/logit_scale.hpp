// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <string>
#include <tuple>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/kernel/elementwise/learned_scale.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/parameter.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Options of LogitScale.
struct LogitScaleOptions {
  double start = 1 / 0.07;  ///< initial factor
  double max = 100;         ///< upper bound of the factor
};

/// Elementwise y = min(e^s, max) * x with a learned number s: the temperature of a contrastive loss. While e^s exceeds
/// `max`, s takes a gradient only if a step against it decreases s. This is decided for each device's and each
/// micro-batch's gradient separately. If the model's visit calls `scale_.visit(each)`, the parameter is named
/// "logit_scale", as in CLIP.
/// @shape logit_scale [], a single number, as PyTorch saves it   @shape x any, returns as x
/// @determinism bitwise, for any number of threads
/// @source Radford et al.: Learning Transferable Visual Models From Natural Language Supervision (2021)
class LogitScale : detail::RejectedCalls<2> {
 public:
  LogitScale() : LogitScale(LogitScaleOptions{}) {}
  /// @throws ConfigError unless 0 < start <= max, and both are finite
  explicit LogitScale(LogitScaleOptions const& options)
      : scale_{{}, Initializer::constant(std::log(options.start))}, factor_{options.max, std::log(options.max)} {
    expect<ConfigError>(0 < options.start && options.start <= options.max && std::isfinite(options.max), [&] {
      return "LogitScale: the factor starts at " + shortest(options.start) + " and its max is " +
             shortest(options.max) + "; it must start above 0 and not above its max";
    });
  }

  /// Names the parameter "logit_scale".
  void visit(auto&& each) { each("logit_scale", scale_); }

  /// Returns x times the factor.
  template <class Context, int Rank>
  [[nodiscard]] VariableOf<Context, Rank> forward(Context& context, VariableOf<Context, Rank> x) const {
    using Operand = nn::Operand<Context>;
    using Kernel = kernel::LearnedScale<typename Context::Space>;
    Extents<1> const flat{x.value.size()};
    auto const y = context.template variable<Rank>(x.value.extent);
    {
      Staging work(context);
      Kernel::template run<Operand>(context.stream(), factor_, context.template value<0>(scale_).data,
                                    work.read(x.value).reshape(flat), work.write(y.value).reshape(flat),
                                    Write::overwrite);
    }
    context.on_backward(y, std::tie(scale_), [this, x, y, flat](Context& c) {
      Staging back(c);
      auto const* const s = c.template value<0>(scale_).data;
      auto const dy = back.read(y.gradient()).reshape(flat);
      auto const dscale = c.gradient(scale_);
      auto* const partial = back.template temporary<double>(Extents<1>{Kernel::chunks(flat[0])}).data;
      Kernel::template factor_backward<Operand>(c.stream(), factor_, s, dy, back.read(c.saved_value(x)).reshape(flat),
                                                dscale.data, dscale.write, partial);
      if (auto const dx = back.gradient(x))
        Kernel::template run<Operand>(c.stream(), factor_, s, dy, {dx.data, flat}, dx.write);
    });
    return y;
  }
  /// Returns the tokens times the factor.
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> const& x) const {
    return x.with(forward(context, x.tokens));
  }
  /// Rejects calls without the context in front, or without an input, at compile time.
  using detail::RejectedCalls<2>::forward;

 private:
  Parameter scale_;
  kernel::LearnedFactor factor_;
};

}}}  // namespace lockstep::nn
