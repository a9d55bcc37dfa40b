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
#include <lockstep/nn/detail/apply_to_rows.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/random/dropout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Layer normalisation: y = weight * (x - mean) / sqrt(variance + epsilon) + bias, with mean and variance over each
/// row. The residual form normalises x + dropout(added) in the same pass. The weights start as 1, the bias as 0.
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

  /// Normalises each row.
  /// @shape x [rows, width]   @shape returns as x
  /// @throws ShapeError if x has another width
  template <class Context>
  [[nodiscard]] VariableOf<Context, 2> forward(Context& context, VariableOf<Context, 2> x) const {
    return normalize(context, x, VariableOf<Context, 2>{}, {});
  }
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> const& x) const {
    return x.with(forward(context, x.tokens));
  }
  /// Normalises the channels of each pixel, voxel or time step.
  /// @shape x [rows, …, width]   @shape returns as x
  template <class Context, int Rank>
  requires(Rank > 2)
      [[nodiscard]] VariableOf<Context, Rank> forward(Context& context, VariableOf<Context, Rank> x) const {
    return detail::apply_to_rows(x, [&](auto const& rows) { return forward(context, rows); });
  }
  /// Rejects a batch's tensor or column at compile time: the layer takes a Variable.
  template <class Context, detail::BatchTensor X>
  VariableOf<Context, 2> forward(Context&, X const& x) const {
    return detail::reject_batch_tensor<VariableOf<Context, 2>>(x);
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
    bool const joins = added.value.data != nullptr;
    check(x.value.extent, added.value.extent, joins);
    auto y = context.template variable<2>(x.value.extent);
    TensorView<Real, 2, typename Context::Space> moments;
    if (context.recording()) {
      moments = context.template temporary<Real>(Extents<2>{x.extent(0), 2});
      if (!joins) sum = x.value;
      if (!sum.data) sum = context.template temporary<typename Context::Scalar>(x.value.extent);
    } else {
      sum = {};
    }
    Staging work(context);
    Kernel::template forward<Operand<Context>>(
        context.stream(), work.read(x.value), {.value = work.read(added.value), .dropout = dropout},
        context.template value<1>(weight_), context.template value<1>(bias_), static_cast<Real>(epsilon_),
        work.write(joins ? sum : decltype(sum){}), moments, work.write(y.value));
    // A sum that was stored rounded would not give the same y again.
    if constexpr (std::is_same_v<typename Context::Scalar, Real>)
      context.on_recompute(y, [this, x, sum, joins](Context& c, auto to) {
        this->normalize_again(c, joins ? sum : c.saved_value(x), to);
      });
    context.on_backward(y, std::tie(weight_, bias_), [this, x, added, y, dropout, sum, moments](Context& c) {
      Staging back(c);
      auto const from = back.read(added.value.data ? sum : c.saved_value(x));
      auto const dy = back.read(y.gradient());
      c.release(y);  // all closures that read it have run
      // x's gradient may replace y's, unless it is also the gradient of `added`.
      bool const apart = x.slot != added.slot;
      auto const dx = apart ? back.gradient_in_place(x, y) : back.gradient(x);
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
  void normalize_again(Context& c, typename Context::template View<2> sum, typename Context::template View<2> y) const {
    using Real = typename Context::Real;
    kernel::LayerNorm<typename Context::Space>::template forward<Real>(
        c.stream(), sum, {}, c.template value<1>(weight_), c.template value<1>(bias_), static_cast<Real>(epsilon_), {},
        {}, y);
  }

  void check(Extents<2> x, Extents<2> added, bool joins) const {
    expect<ShapeError>(x[1] == width(), [&] {
      return weight_.layer("LayerNorm") + ": the input is " + to_string(x) + " and weight is [" +
             std::to_string(width()) + "]; the input needs " + std::to_string(width()) + " columns";
    });
    expect<ShapeError>(!joins || x == added, [&] {
      return weight_.layer("LayerNorm") + ": the input is " + to_string(x) + " and the residual " + to_string(added) +
             "; their shapes must be equal";
    });
  }

  Parameter weight_, bias_;
  double epsilon_;
};

}}}  // namespace lockstep::nn
