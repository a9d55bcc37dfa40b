// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <tuple>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/layer_norm.hpp>
#include <lockstep/nn/context.hpp>
#include <lockstep/nn/dropout.hpp>
#include <lockstep/nn/sequence.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// y = weight * (x - mean) / sqrt(variance + epsilon) + bias, mean and variance over each row. The residual form
/// normalises x + dropout(added) in the same pass. Starts as the identity map of the normalised row.
/// @shape weight, bias [width]
/// @determinism bitwise, for any number of threads
/// @source Ba, Kiros, Hinton: Layer Normalization (2016)
class LayerNorm {
 public:
  /// @throws ConfigError unless width is at least 1 and epsilon above 0
  explicit LayerNorm(Index width, double epsilon = 1e-5)
      : weight_{{width}, Initializer::constant(1)}, bias_{{width}, Initializer::constant(0)}, epsilon_(epsilon) {
    expect<ConfigError>(width >= 1 && epsilon > 0, [&] {
      return "LayerNorm: width " + std::to_string(width) + " and epsilon " + std::to_string(epsilon) +
             "; width must be at least 1 and epsilon above 0";
    });
  }

  void visit(auto&& each) {
    each("weight", weight_);
    each("bias", bias_);
  }

  [[nodiscard]] Index width() const noexcept { return weight_.shape[0]; }

  /// @shape x [rows, width]   @shape returns as x
  /// @throws ShapeError when x has another width
  template <class Context>
  [[nodiscard]] typename Context::template Variable<2> forward(Context& context,
                                                               typename Context::template Variable<2> x) const {
    return normalize(context, x, typename Context::template Variable<2>{}, Residual<Context>{});
  }
  template <class Context>
  [[nodiscard]] Sequence<typename Context::Scalar, typename Context::Space> forward(
      Context& context, Sequence<typename Context::Scalar, typename Context::Space> const& x) const {
    return x.with(forward(context, x.tokens));
  }

  /// norm(x + added).
  /// @shape x, added [rows, width]
  /// @throws ShapeError when the shapes differ or the width is another
  template <class Context>
  [[nodiscard]] typename Context::template Variable<2> forward(Context& context,
                                                               typename Context::template Variable<2> x,
                                                               typename Context::template Variable<2> added) const {
    return normalize(context, x, added, Residual<Context>{.value = added.value});
  }

  /// norm(x + dropout(added)).
  template <class Context>
  [[nodiscard]] Sequence<typename Context::Scalar, typename Context::Space> forward(
      Context& context, Sequence<typename Context::Scalar, typename Context::Space> const& x,
      Sequence<typename Context::Scalar, typename Context::Space> const& added, Dropout const& dropout) const {
    return x.with(normalize(context, x.tokens, added.tokens,
                            Residual<Context>{.value = added.tokens.value,
                                              .dropout = {.mask = dropout.mask(context), .layout = x.layout}}));
  }

 private:
  template <class Context>
  using Residual = kernel::Residual<typename Context::Scalar, typename Context::Space>;

  template <class Context>
  typename Context::template Variable<2> normalize(Context& context, typename Context::template Variable<2> x,
                                                   typename Context::template Variable<2> added,
                                                   Residual<Context> residual) const {
    using Scalar = typename Context::Scalar;
    using Kernel = kernel::LayerNorm<typename Context::Space>;
    check(x.value.extent, added.value.extent, residual.value.data != nullptr);
    auto y = context.template variable<2>(x.value.extent);
    typename Context::template View<2> sum;
    TensorView<Accumulate<Scalar>, 2, typename Context::Space> moments;
    if (context.recording()) {
      moments = context.template temporary<Accumulate<Scalar>>(Extents<2>{x.extent(0), 2});
      sum = residual.value.data ? context.template temporary<Scalar>(x.value.extent) : x.value;
    }
    Kernel::template forward<Scalar>(context.stream(), x.value, residual, context.template value<1>(weight_),
                                     context.template value<1>(bias_), static_cast<Scalar>(epsilon_), sum, moments,
                                     y.value);
    context.on_backward(y, std::tie(weight_, bias_), [this, x, added, y, residual, sum, moments](Context& c) {
      auto const dx = c.gradient(x), dadded = c.gradient(added);
      auto const dweight = c.gradient(weight_), dbias = c.gradient(bias_);
      auto const partial = c.template temporary<Scalar>(Extents<1>{Kernel::partial_elements(x.extent(0), width())});
      Kernel::template backward<Scalar>(c.stream(), y.gradient(), sum, moments, residual, c.template value<1>(weight_),
                                        {dx.data, x.value.extent}, dx.write, {dadded.data, x.value.extent},
                                        dadded.write, {dweight.data, {width()}}, dweight.write, {dbias.data, {width()}},
                                        dbias.write, partial.data);
    });
    return y;
  }

  void check(Extents<2> x, Extents<2> added, bool joins) const {
    expect<ShapeError>(x[1] == width(), [&] {
      return weight_.layer("LayerNorm") + ": the input is " + to_string(x) + " and weight is [" +
             std::to_string(width()) + "]; the input needs " + std::to_string(width()) + " columns";
    });
    expect<ShapeError>(!joins || x == added, [&] {
      return weight_.layer("LayerNorm") + ": the input is " + to_string(x) + " and what is added to it " +
             to_string(added) + "; they must be alike";
    });
  }

  Parameter weight_, bias_;
  double epsilon_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
