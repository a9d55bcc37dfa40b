// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/normalization/rms_norm.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

template <class Context>
LOCKSTEP_INLINE VariableOf<Context, 2> RMSNorm::forward(Context& context, VariableOf<Context, 2> x) const {
  return normalize(context, x, x, {}, {}).normalized;
}

template <class Context>
LOCKSTEP_INLINE RMSNorm::SumAndNorm<Context> RMSNorm::add_and_normalize(Context& context, SequenceOf<Context> const& x,
                                                                        SequenceOf<Context> const& added,
                                                                        Dropout const& dropout) const {
  check_residual(x.tokens.value.extent, added.tokens.value.extent);
  auto const sum = context.template variable<2>(x.tokens.value.extent);
  auto const result = normalize(context, x.tokens, sum, added.tokens, dropout.mask(context, x.layout));
  return {x.with(result.sum), x.with(result.normalized)};
}

template <class Context>
LOCKSTEP_INLINE RMSNorm::Result<Context> RMSNorm::normalize(Context& context, VariableOf<Context, 2> x,
                                                            VariableOf<Context, 2> sum, VariableOf<Context, 2> added,
                                                            kernel::RowDropout<typename Context::Space> dropout) const {
  using Real = typename Context::Real;
  using Kernel = kernel::RMSNorm<typename Context::Space>;
  check_width(x.value.extent);
  bool const has_residual = added.value.data != nullptr;
  auto const y = context.template variable<2>(x.value.extent);
  TensorView<Real, 1, typename Context::Space> reciprocals;
  if (context.recording()) reciprocals = context.template temporary<Real>(Extents<1>{x.extent(0)});
  Staging work(context);
  Kernel::template forward<Operand<Context>>(
      context.stream(), work.read(x.value), {.value = work.read(added.value), .dropout = dropout},
      context.template value<1>(weight_), static_cast<Real>(epsilon_),
      work.write(has_residual ? sum.value : typename Context::template View<2>{}), reciprocals, work.write(y.value));
  if (has_residual)
    context.on_backward(sum, std::tuple{}, [=](Context& c) { backward_of_sum(c, x, sum, added, dropout); });
  context.on_backward(y, std::tie(weight_), [=, this](Context& c) {
    // This closure also passes on gradients that flow into the sum from elsewhere, so the sum's own closure has
    // nothing left to do.
    Staging back(c);
    TensorView<Operand<Context> const, 2, typename Context::Space> sum_gradient;
    if (has_residual && sum.slot->data) {
      sum_gradient = back.read(sum.gradient());
      sum.slot->data = nullptr;
    }
    auto const dx = back.gradient(x), dadded = back.gradient(added);
    auto const dweight = c.gradient(weight_);
    auto const partial = c.template temporary<Real>(Extents<1>{Kernel::partial_elements(x.extent(0), width())});
    Kernel::template backward<Operand<Context>>(c.stream(), back.read(y.gradient()), back.read(c.saved_value(sum)),
                                                reciprocals, sum_gradient, dropout, c.template value<1>(weight_),
                                                {dx.data, x.value.extent}, dx.write, {dadded.data, x.value.extent},
                                                dadded.write, {dweight.data, {width()}}, dweight.write, partial.data);
  });
  return {sum, y};
}

template <class Context>
LOCKSTEP_INLINE void RMSNorm::backward_of_sum(Context& c, VariableOf<Context, 2> x, VariableOf<Context, 2> sum,
                                              VariableOf<Context, 2> added,
                                              kernel::RowDropout<typename Context::Space> dropout) {
  using Operand = nn::Operand<Context>;
  Extents<1> const flat{sum.value.size()};
  Staging back(c);
  auto const dsum = back.read(sum.gradient());
  auto const copy = [&](auto const& target) {
    kernel::BinaryOperation<typename Context::Space>::template backward<kernel::FirstOperand, Operand>(
        c.stream(), dsum.reshape(flat), {}, {target.data, flat}, target.write);
  };
  if (auto const dx = back.gradient(x)) copy(dx);
  auto const dadded = back.gradient(added);
  if (!dadded) return;
  if (dropout.mask.active())
    kernel::Dropout<typename Context::Space>::template apply<Operand>(c.stream(), dropout.mask, dropout.layout, dsum,
                                                                      {dadded.data, sum.value.extent}, dadded.write);
  else
    copy(dadded);
}

// Instantiations in the library, for programs that link it.
#if defined(LOCKSTEP_COMPILED)
#define LOCKSTEP_RMS_NORM(Number, Space)                                                                              \
  template VariableOf<Context<Number, Space>, 2> RMSNorm::forward<Context<Number, Space>>(                            \
      Context<Number, Space> & context, VariableOf<Context<Number, Space>, 2> x) const;                               \
  template RMSNorm::SumAndNorm<Context<Number, Space>> RMSNorm::add_and_normalize<Context<Number, Space>>(            \
      Context<Number, Space> & context, SequenceOf<Context<Number, Space>> const& x,                                  \
      SequenceOf<Context<Number, Space>> const& added, Dropout const& dropout) const;                                 \
  template RMSNorm::Result<Context<Number, Space>> RMSNorm::normalize<Context<Number, Space>>(                        \
      Context<Number, Space> & context, VariableOf<Context<Number, Space>, 2> x,                                      \
      VariableOf<Context<Number, Space>, 2> sum, VariableOf<Context<Number, Space>, 2> added,                         \
      kernel::RowDropout<Space> dropout) const;                                                                       \
  template void RMSNorm::backward_of_sum<Context<Number, Space>>(                                                     \
      Context<Number, Space> & c, VariableOf<Context<Number, Space>, 2> x, VariableOf<Context<Number, Space>, 2> sum, \
      VariableOf<Context<Number, Space>, 2> added, kernel::RowDropout<Space> dropout)
#endif

}}}  // namespace lockstep::nn
