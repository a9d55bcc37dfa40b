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
#include <lockstep/nn/staging.hpp>

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
    return normalize(context, x, typename Context::template Variable<2>{}, {});
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
    return normalize(context, x, added, {});
  }

  /// norm(x + dropout(added)).
  template <class Context>
  [[nodiscard]] Sequence<typename Context::Scalar, typename Context::Space> forward(
      Context& context, Sequence<typename Context::Scalar, typename Context::Space> const& x,
      Sequence<typename Context::Scalar, typename Context::Space> const& added, Dropout const& dropout) const {
    return x.with(normalize(context, x.tokens, added.tokens, {.mask = dropout.mask(context), .layout = x.layout}));
  }

 private:
  template <class Context>
  typename Context::template Variable<2> normalize(Context& context, typename Context::template Variable<2> x,
                                                   typename Context::template Variable<2> added,
                                                   kernel::RowDropout<typename Context::Space> dropout) const {
    using Real = typename Context::Real;
    using Kernel = kernel::LayerNorm<typename Context::Space>;
    bool const joins = added.value.data != nullptr;
    check(x.value.extent, added.value.extent, joins);
    auto y = context.template variable<2>(x.value.extent);
    typename Context::template View<2> sum;
    TensorView<Real, 2, typename Context::Space> moments;
    if (context.recording()) {
      moments = context.template temporary<Real>(Extents<2>{x.extent(0), 2});
      sum = joins ? context.template temporary<typename Context::Scalar>(x.value.extent) : x.value;
    }
    Staging work(context);
    Kernel::template forward<Operand<Context>>(
        context.stream(), work.read(x.value), {.value = work.read(added.value), .dropout = dropout},
        context.template value<1>(weight_), context.template value<1>(bias_), static_cast<Real>(epsilon_),
        work.write(joins ? sum : decltype(sum){}), moments, work.write(y.value));
    context.on_backward(y, std::tie(weight_, bias_), [this, x, added, y, dropout, sum, moments](Context& c) {
      Staging back(c);
      auto const dx = back.gradient(x), dadded = back.gradient(added);
      auto const dweight = c.gradient(weight_), dbias = c.gradient(bias_);
      auto const partial = c.template temporary<Real>(Extents<1>{Kernel::partial_elements(x.extent(0), width())});
      Kernel::template backward<Operand<Context>>(
          c.stream(), back.read(y.gradient()), back.read(sum), moments, {.value = {}, .dropout = dropout},
          c.template value<1>(weight_), {dx.data, x.value.extent}, dx.write, {dadded.data, x.value.extent},
          dadded.write, {dweight.data, {width()}}, dweight.write, {dbias.data, {width()}}, dbias.write, partial.data);
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
