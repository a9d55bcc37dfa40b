// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/elementwise/elementwise.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/staging.hpp>

// An activation of a matrix, for its instantiation in the library.
#define LOCKSTEP_ACTIVATION(Function, Number, Space)                                                 \
  VariableOf<Context<Number, Space>, 2> Function<Context<Number, Space>, 2>(Context<Number, Space>&, \
                                                                            VariableOf<Context<Number, Space>, 2>)

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn::detail {

/// Elementwise y = rule(x), computed by the constructor. Keeps slopes for backward if y does not determine them. The
/// caller registers the backward, so that a trace shows the activation's own name.
template <class Rule, class Context, int Rank>
class Elementwise {
 public:
  using Variable = VariableOf<Context, Rank>;

  Elementwise(Context& context, Variable x, Rule rule = {})
      : x_(x), y_(context.template variable<Rank>(x.value.extent)), saved_{y_.value.data, flat()}, rule_(rule) {
    Staging work(context);
    auto const from = work.read(x.value).reshape(flat());
    auto const to = work.write(y_.value).reshape(flat());
    if constexpr (has_slope) {
      if (context.recording() && x.slot) {
        saved_ = context.template temporary<typename Context::Scalar>(flat());
        Kernel::template forward<Rule, Operand<Context>>(context.stream(), from, to, work.write(saved_), rule);
        return;
      }
    }
    Kernel::template forward<Rule, Operand<Context>>(context.stream(), from, to, rule);
  }
  void backward(Context& context) const {
    Staging back(context);
    auto const dy = back.read(y_.gradient()).reshape(flat());
    if (auto const dx = back.gradient(x_))
      Kernel::template backward<Rule, Operand<Context>>(context.stream(), dy, back.read(saved_), {dx.data, flat()},
                                                        dx.write, rule_);
  }
  [[nodiscard]] Variable output() const noexcept { return y_; }

 private:
  using Kernel = kernel::Elementwise<typename Context::Space>;
  static constexpr bool has_slope = requires(Rule const& rule) { rule.at(1.0f); };

  [[nodiscard]] Extents<1> flat() const noexcept { return Extents<1>{x_.value.size()}; }

  Variable x_, y_;
  TensorView<typename Context::Scalar, 1, typename Context::Space> saved_;
  Rule rule_;
};

}}}  // namespace lockstep::nn::detail
