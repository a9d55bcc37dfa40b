// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/linear/linear.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

LOCKSTEP_INLINE Linear::Linear(Index inputs, Index outputs, Bias bias)
    : weight_{{outputs, inputs}, Initializer::fan_in(inputs)},
      bias_{{outputs}, Initializer::fan_in(inputs)},
      has_bias_(bias == Bias::learned) {
  expect<ConfigError>(inputs >= 1 && outputs >= 1, [&] {
    return "Linear: " + std::to_string(inputs) + " inputs and " + std::to_string(outputs) +
           " outputs; both must be at least 1";
  });
}

template <class Context>
LOCKSTEP_INLINE TensorView<Operand<Context> const, 2, typename Context::Space> Linear::weight(
    Staging<Context>& work) const {
  return work.template factor<2>(weight_);
}

template <class Context>
LOCKSTEP_INLINE TensorView<Operand<Context> const, 1, typename Context::Space> Linear::bias(
    Staging<Context>& work) const {
  if (!has_bias_) return {};
  return work.template factor<1>(bias_);
}

template <class Context>
LOCKSTEP_INLINE VariableOf<Context, 2> Linear::forward(Context& context, VariableOf<Context, 2> x) const {
  check(x.value.extent);
  auto const y = output(context, x.extent(0));
  Staging work(context);
  kernel::Linear<typename Context::Space>::template forward<Operand<Context>>(
      context.stream(), work.read(x.value), weight(work), bias(work), work.write(y.value));
  on_backward(context, y, [this, x, y](Context& c) { backward(c, x, y); });
  return y;
}

template <class Context>
LOCKSTEP_INLINE SequenceOf<Context> Linear::forward(Context& context, SequenceOf<Context> const& x) const {
  return x.with(forward(context, x.tokens));
}

template <class Context>
LOCKSTEP_INLINE VariableOf<Context, 2> Linear::forward(Context& context, VariableOf<Context, 2> x,
                                                       ActivationOption activation) const {
  if (activation == Activation::none) return forward(context, x);
  auto const activated = forward(context, x, activation, {});
  on_backward(context, activated.y, [this, x, activated](Context& c) {
    // No other closure reads y's gradient or the kept slopes: the gradient before the activation overwrites either.
    Extents<1> const flat{activated.y.value.size()};
    typename Context::template View<2> dh{activated.y.slot->data, activated.y.value.extent};
    {
      Staging work(c);
      using Kernel = kernel::Elementwise<typename Context::Space>;
      auto const in_place = work.update(dh).reshape(flat);
      if (auto const slope = activated.slope.factors; slope.data) {
        Kernel::template backward<kernel::Gelu, Operand<Context>>(c.stream(), in_place, work.read(slope).reshape(flat),
                                                                  in_place, Write::overwrite);
      } else {
        Kernel::template backward<kernel::Relu, Operand<Context>>(
            c.stream(), in_place, work.read(activated.y.value).reshape(flat), in_place, Write::overwrite);
      }
    }
    backward(c, x, dh);
  });
  return activated.y;
}

template <class Context>
LOCKSTEP_INLINE SequenceOf<Context> Linear::forward(Context& context, SequenceOf<Context> const& x,
                                                    ActivationOption activation) const {
  return x.with(forward(context, x.tokens, activation));
}

template <class Context>
LOCKSTEP_INLINE Linear::Activated<Context> Linear::forward(Context& context, VariableOf<Context, 2> x,
                                                           Activation activation,
                                                           kernel::RowDropout<typename Context::Space> dropout) const {
  using Real = typename Context::Real;
  check(x.value.extent);
  Activated<Context> activated{context.template variable<2>({x.extent(0), outputs()}), {}};
  typename Context::template View<2> factors;
  if (context.recording() && kernel::keeps_slope(activation))
    factors = context.template temporary<typename Context::Scalar>(activated.y.value.extent);
  Staging work(context);
  kernel::Linear<typename Context::Space>::template forward<Operand<Context>>(
      context.stream(), work.read(x.value), weight(work), bias(work), activation, dropout,
      work.write(activated.y.value), work.write(factors));
  activated.slope = {.factors = factors,
                     .positive = activation == Activation::relu ? static_cast<Real>(dropout.mask.scale()) : Real{0}};
  return activated;
}

template <class Context>
LOCKSTEP_INLINE VariableOf<Context, 2> Linear::output(Context& context, Index rows) const {
  auto const y = context.template variable<2>({rows, outputs()});
  if (y.slot && has_bias_) y.slot->bias = &bias_;
  return y;
}

template <class Context>
LOCKSTEP_INLINE void Linear::backward(
    Context& c, VariableOf<Context, 2> x, TensorView<typename Context::Scalar const, 2, typename Context::Space> dy,
    kernel::ActivationSlope<typename Context::Scalar, typename Context::Space> slope) const {
  backward(c, x, dy, slope, has_bias_);
}

template <class Context>
LOCKSTEP_INLINE void Linear::backward(
    Context& c, VariableOf<Context, 2> x, VariableOf<Context, 2> y,
    kernel::ActivationSlope<typename Context::Scalar, typename Context::Space> slope) const {
  backward(c, x, y.gradient(), slope, y.slot->bias != nullptr);
}

template <class Context>
LOCKSTEP_INLINE void Linear::backward(Context& c, VariableOf<Context, 2> x,
                                      TensorView<typename Context::Scalar const, 2, typename Context::Space> dy,
                                      kernel::ActivationSlope<typename Context::Scalar, typename Context::Space> slope,
                                      bool with_bias) const {
  using Real = typename Context::Real;
  using Kernel = kernel::Linear<typename Context::Space>;
  Staging work(c);
  auto const dx = work.gradient(x);
  GradientTarget<Real> const none{nullptr, Write::overwrite};
  auto const dweight = weight_.frozen ? none : c.gradient(weight_);
  auto const dbias = with_bias && !bias_.frozen ? c.gradient(bias_) : none;
  auto const partial =
      work.temporary(Extents<1>{Kernel::partial_elements(c.stream(), x.extent(0), inputs(), outputs())});
  Kernel::template backward<Operand<Context>>(
      c.stream(), work.read(dy), work.read(c.saved_value(x)), weight(work),
      {.factors = work.read(slope.factors), .positive = slope.positive}, {dx.data, x.value.extent}, dx.write,
      {dweight.data, {outputs(), inputs()}}, dweight.write, {dbias.data, {outputs()}}, dbias.write, partial.data);
}

template <class Context>
LOCKSTEP_INLINE void Linear::backward_through_gelu(
    Context& c, VariableOf<Context, 2> before,
    TensorView<typename Context::Scalar const, 2, typename Context::Space> dy) const {
  using Real = typename Context::Real;
  using Kernel = kernel::Linear<typename Context::Space>;
  static_assert(std::is_same_v<Real, typename Context::Scalar>, "Lockstep: a rounded value does not reproduce x");
  Staging work(c);
  auto const rows = before.extent(0);
  auto const h = c.gradient_in_place_of_value(before);
  auto const dweight = c.gradient(weight_);
  auto const dbias = has_bias_ ? c.gradient(bias_) : GradientTarget<Real>{nullptr, Write::overwrite};
  auto const elements = [](Index count) { return Extents<1>{count}; };
  auto const partial = work.temporary(elements(Kernel::partial_elements(c.stream(), rows, inputs(), outputs())));
  auto const recomputed = work.temporary(elements(Kernel::recomputed_elements(c.stream(), rows, inputs())));
  Kernel::template backward_through_gelu<Real>(c.stream(), dy, {h.data, before.value.extent},
                                               c.template value<2>(weight_), {dweight.data, {outputs(), inputs()}},
                                               dweight.write, {dbias.data, {outputs()}}, dbias.write, partial.data,
                                               recomputed.data);
}

// Instantiations in the library, for programs that link it.
#if defined(LOCKSTEP_COMPILED)
#define LOCKSTEP_LINEAR(Number, Space)                                                                               \
  template TensorView<Operand<Context<Number, Space>> const, 2, Space> Linear::weight<Context<Number, Space>>(       \
      Staging<Context<Number, Space>> & work) const;                                                                 \
  template TensorView<Operand<Context<Number, Space>> const, 1, Space> Linear::bias<Context<Number, Space>>(         \
      Staging<Context<Number, Space>> & work) const;                                                                 \
  template VariableOf<Context<Number, Space>, 2> Linear::forward<Context<Number, Space>>(                            \
      Context<Number, Space> & context, VariableOf<Context<Number, Space>, 2> x) const;                              \
  template SequenceOf<Context<Number, Space>> Linear::forward<Context<Number, Space>>(                               \
      Context<Number, Space> & context, SequenceOf<Context<Number, Space>> const& x) const;                          \
  template VariableOf<Context<Number, Space>, 2> Linear::forward<Context<Number, Space>>(                            \
      Context<Number, Space> & context, VariableOf<Context<Number, Space>, 2> x, ActivationOption activation) const; \
  template SequenceOf<Context<Number, Space>> Linear::forward<Context<Number, Space>>(                               \
      Context<Number, Space> & context, SequenceOf<Context<Number, Space>> const& x, ActivationOption activation)    \
      const;                                                                                                         \
  template Linear::Activated<Context<Number, Space>> Linear::forward<Context<Number, Space>>(                        \
      Context<Number, Space> & context, VariableOf<Context<Number, Space>, 2> x, Activation activation,              \
      kernel::RowDropout<Space> dropout) const;                                                                      \
  template void Linear::backward<Context<Number, Space>>(                                                            \
      Context<Number, Space> & c, VariableOf<Context<Number, Space>, 2> x,                                           \
      TensorView<typename Context<Number, Space>::Scalar const, 2, Space> dy,                                        \
      kernel::ActivationSlope<typename Context<Number, Space>::Scalar, Space> slope) const;                          \
  template VariableOf<Context<Number, Space>, 2> Linear::output<Context<Number, Space>>(                             \
      Context<Number, Space> & context, Index rows) const;                                                           \
  template void Linear::backward<Context<Number, Space>>(                                                            \
      Context<Number, Space> & c, VariableOf<Context<Number, Space>, 2> x, VariableOf<Context<Number, Space>, 2> y,  \
      kernel::ActivationSlope<typename Context<Number, Space>::Scalar, Space> slope) const
// Only float and double have these.
#define LOCKSTEP_LINEAR_EXACT(Number, Space)                                    \
  template void Linear::backward_through_gelu<Context<Number, Space>>(          \
      Context<Number, Space> & c, VariableOf<Context<Number, Space>, 2> before, \
      TensorView<typename Context<Number, Space>::Scalar const, 2, Space> dy) const
#endif

}}}  // namespace lockstep::nn
