// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/normalization/layer_norm.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

template <class Context>
LOCKSTEP_INLINE VariableOf<Context, 2> LayerNorm::forward(Context& context, VariableOf<Context, 2> x) const {
  return normalize(context, x, VariableOf<Context, 2>{}, {});
}

template <class Context>
LOCKSTEP_INLINE VariableOf<Context, 2> LayerNorm::forward(Context& context, VariableOf<Context, 2> x,
                                                          VariableOf<Context, 2> added) const {
  return normalize(context, x, added, {});
}

template <class Context>
LOCKSTEP_INLINE SequenceOf<Context> LayerNorm::forward(Context& context, SequenceOf<Context> const& x,
                                                       SequenceOf<Context> const& added, Dropout const& dropout) const {
  return x.with(normalize(context, x.tokens, added.tokens, dropout.mask(context, x.layout)));
}

template <class Context>
LOCKSTEP_INLINE SequenceOf<Context> LayerNorm::forward_in_place(Context& context, SequenceOf<Context> const& x,
                                                                SequenceOf<Context> const& added,
                                                                Dropout const& dropout) const {
  auto const y = normalize(context, x.tokens, added.tokens, dropout.mask(context, x.layout), added.tokens.value);
  if (!context.recording()) context.release(added.tokens);
  return x.with(y);
}

template <class Context>
LOCKSTEP_INLINE VariableOf<Context, 2> LayerNorm::normalize(Context& context, VariableOf<Context, 2> x,
                                                            VariableOf<Context, 2> added,
                                                            kernel::RowDropout<typename Context::Space> dropout,
                                                            typename Context::template View<2> sum) const {
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
    // If the sum is in place of `added`, no other layer reads `added` or writes its gradient.
    GradientTarget<Real> dadded_sums{nullptr, Write::overwrite};
    if (Kernel::sums_dresidual && dadded && dadded.write == Write::overwrite && sum.data == added.value.data)
      if (auto const* const bias = added.slot->bias; bias && bias->size() == width()) {
        dadded_sums = c.gradient(*bias);
        added.slot->bias = nullptr;
      }
    auto const partial = back.temporary(Extents<1>{Kernel::partial_elements(x.extent(0), width())});
    Kernel::template backward<Operand<Context>>(c.stream(), dy, from, moments, {.value = {}, .dropout = dropout},
                                                c.template value<1>(weight_), {dx.data, x.value.extent}, dx.write,
                                                {dadded.data, x.value.extent}, dadded.write, {dweight.data, {width()}},
                                                dweight.write, {dbias.data, {width()}}, dbias.write, partial.data,
                                                {dadded_sums.data, {width()}}, dadded_sums.write);
  });
  return y;
}

template <class Context>
LOCKSTEP_INLINE void LayerNorm::recompute_output(Context& c, typename Context::template View<2> sum,
                                                 typename Context::template View<2> y) const {
  using Real = typename Context::Real;
  kernel::LayerNorm<typename Context::Space>::template forward<Real>(c.stream(), sum, {}, c.template value<1>(weight_),
                                                                     c.template value<1>(bias_),
                                                                     static_cast<Real>(epsilon_), {}, {}, y);
}

// Instantiations in the library, for programs that link it.
#if defined(LOCKSTEP_COMPILED)
#define LOCKSTEP_LAYER_NORM(Number, Space)                                                         \
  template VariableOf<Context<Number, Space>, 2> LayerNorm::forward<Context<Number, Space>>(       \
      Context<Number, Space> & context, VariableOf<Context<Number, Space>, 2> x) const;            \
  template VariableOf<Context<Number, Space>, 2> LayerNorm::forward<Context<Number, Space>>(       \
      Context<Number, Space> & context, VariableOf<Context<Number, Space>, 2> x,                   \
      VariableOf<Context<Number, Space>, 2> added) const;                                          \
  template SequenceOf<Context<Number, Space>> LayerNorm::forward<Context<Number, Space>>(          \
      Context<Number, Space> & context, SequenceOf<Context<Number, Space>> const& x,               \
      SequenceOf<Context<Number, Space>> const& added, Dropout const& dropout) const;              \
  template SequenceOf<Context<Number, Space>> LayerNorm::forward_in_place<Context<Number, Space>>( \
      Context<Number, Space> & context, SequenceOf<Context<Number, Space>> const& x,               \
      SequenceOf<Context<Number, Space>> const& added, Dropout const& dropout) const;              \
  template VariableOf<Context<Number, Space>, 2> LayerNorm::normalize<Context<Number, Space>>(     \
      Context<Number, Space> & context, VariableOf<Context<Number, Space>, 2> x,                   \
      VariableOf<Context<Number, Space>, 2> added, kernel::RowDropout<Space> dropout,              \
      typename Context<Number, Space>::template View<2> sum) const
// Only float and double have these.
#define LOCKSTEP_LAYER_NORM_EXACT(Number, Space)                                         \
  template void LayerNorm::recompute_output<Context<Number, Space>>(                     \
      Context<Number, Space> & c, typename Context<Number, Space>::template View<2> sum, \
      typename Context<Number, Space>::template View<2> y) const
#endif

}}}  // namespace lockstep::nn
