// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <tuple>
#include <type_traits>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/normalization/layer_norm.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/normalization/detail/row_norm.hpp>
#include <lockstep/nn/random/dropout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Layer normalisation: y = weight * (x - mean) / sqrt(variance + epsilon) + bias, with mean and variance over each
/// row. The residual form normalises x + dropout(added) in the same pass. The weights start as 1, the bias as 0.
/// @shape weight, bias [width]
/// @determinism bitwise, for any number of threads
/// @source Ba, Kiros, Hinton: Layer Normalization (2016)
class LayerNorm : public detail::RowNorm<LayerNorm> {
 public:
  static constexpr char const* layer_name = "LayerNorm";
  using RowNorm::forward;  // for sequences, and for images

  /// @throws ConfigError unless width is at least 1 and epsilon above 0
  explicit LayerNorm(Index width, double epsilon = 1e-5)
      : RowNorm(width, epsilon), bias_{{width}, Initializer::constant(0)} {}

  void visit(auto&& each) {
    each("weight", weight_);
    each("bias", bias_);
  }

  /// Normalises each row.
  /// @shape x [rows, width]   @shape returns as x
  /// @throws ShapeError if x has another width
  template <class Context>
  [[nodiscard]] VariableOf<Context, 2> forward(Context& context, VariableOf<Context, 2> x) const {
    return normalize(context, x, VariableOf<Context, 2>{}, {});
  }

  /// Returns norm(x + added).
  /// @shape x, added [rows, width]
  /// @throws ShapeError if the shapes differ or the width is not the layer's
  template <class Context>
  [[nodiscard]] VariableOf<Context, 2> forward(Context& context, VariableOf<Context, 2> x,
                                               VariableOf<Context, 2> added) const {
    return normalize(context, x, added, {});
  }

  /// Returns norm(x + dropout(added)). For 16-bit activations the sum is stored rounded, but its moments are those
  /// before rounding. The gradient of a row that deviates from its mean by less than the rounding is therefore not
  /// exact.
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> const& x,
                                            SequenceOf<Context> const& added, Dropout const& dropout) const {
    return x.with(normalize(context, x.tokens, added.tokens, dropout.mask(context, x.layout)));
  }

  /// Returns norm(x + dropout(added)); the sum overwrites `added`, which no other layer and no backward may read.
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward_in_place(Context& context, SequenceOf<Context> const& x,
                                                     SequenceOf<Context> const& added, Dropout const& dropout) const {
    auto const y = normalize(context, x.tokens, added.tokens, dropout.mask(context, x.layout), added.tokens.value);
    if (!context.recording()) context.release(added.tokens);
    return x.with(y);
  }

 private:
  /// @param sum memory for x + added; null allocates it
  template <class Context>
  VariableOf<Context, 2> normalize(Context& context, VariableOf<Context, 2> x, VariableOf<Context, 2> added,
                                   kernel::RowDropout<typename Context::Space> dropout,
                                   typename Context::template View<2> sum = {}) const {
    using Real = typename Context::Real;
    using Kernel = kernel::LayerNorm<typename Context::Space>;
    bool const has_residual = added.value.data != nullptr;
    check_width(x.value.extent);
    if (has_residual) check_residual(x.value.extent, added.value.extent);
    auto y = context.template variable<2>(x.value.extent);
    TensorView<Real, 2, typename Context::Space> moments;
    if (context.recording()) {
      moments = context.template temporary<Real>(Extents<2>{x.extent(0), 2});
      if (!has_residual) sum = x.value;
      if (!sum.data) sum = context.template temporary<typename Context::Scalar>(x.value.extent);
    } else {
      sum = {};
    }
    Staging work(context);
    Kernel::template forward<Operand<Context>>(
        context.stream(), work.read(x.value), {.value = work.read(added.value), .dropout = dropout},
        context.template value<1>(weight_), context.template value<1>(bias_), static_cast<Real>(epsilon_),
        work.write(has_residual ? sum : decltype(sum){}), moments, work.write(y.value));
    // A sum that was stored rounded would not give the same y again.
    if constexpr (std::is_same_v<typename Context::Scalar, Real>)
      context.on_recompute(y, [this, x, sum, has_residual](Context& c, auto to) {
        this->recompute_output(c, has_residual ? sum : c.saved_value(x), to);
      });
    context.on_backward(y, std::tie(weight_, bias_), [this, x, added, y, dropout, sum, moments](Context& c) {
      Staging back(c);
      auto const from = back.read(added.value.data ? sum : c.saved_value(x));
      auto const dy = back.read(y.gradient());
      c.release(y);  // all closures that read it have run
      // x's gradient may replace y's, unless it is also the gradient of `added`.
      bool const distinct_inputs = x.slot != added.slot;
      auto const dx = distinct_inputs ? back.gradient_in_place(x, y) : back.gradient(x);
      auto const dadded = back.gradient(added);
      auto const dweight = c.gradient(weight_), dbias = c.gradient(bias_);
      auto const partial = back.temporary(Extents<1>{Kernel::partial_elements(x.extent(0), width())});
      Kernel::template backward<Operand<Context>>(
          c.stream(), dy, from, moments, {.value = {}, .dropout = dropout}, c.template value<1>(weight_),
          {dx.data, x.value.extent}, dx.write, {dadded.data, x.value.extent}, dadded.write, {dweight.data, {width()}},
          dweight.write, {dbias.data, {width()}}, dbias.write, partial.data);
    });
    return y;
  }

  /// Recomputes y from the sum that backward keeps.
  template <class Context>
  void recompute_output(Context& c, typename Context::template View<2> sum,
                        typename Context::template View<2> y) const {
    using Real = typename Context::Real;
    kernel::LayerNorm<typename Context::Space>::template forward<Real>(
        c.stream(), sum, {}, c.template value<1>(weight_), c.template value<1>(bias_), static_cast<Real>(epsilon_), {},
        {}, y);
  }

  Parameter bias_;
};

}}}  // namespace lockstep::nn
