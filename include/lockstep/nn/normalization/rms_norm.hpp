// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <tuple>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/elementwise/binary_operation.hpp>
#include <lockstep/kernel/normalization/rms_norm.hpp>
#include <lockstep/kernel/random/dropout.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/staging.hpp>
#include <lockstep/nn/normalization/detail/row_norm.hpp>
#include <lockstep/nn/random/dropout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Root mean square normalisation: y = weight * x / sqrt(mean(x^2) + epsilon), with the mean over each row. The weights
/// start as 1.
/// @shape weight [width]
/// @determinism bitwise, for any number of threads
/// @source Zhang, Sennrich: Root Mean Square Layer Normalization (2019)
class RMSNorm : public detail::RowNorm<RMSNorm> {
 public:
  static constexpr char const* layer_name = "RMSNorm";
  using RowNorm::forward;  // for sequences, and for images

  /// @throws ConfigError unless width is at least 1 and epsilon above 0
  explicit RMSNorm(Index width, double epsilon = 1e-6) : RowNorm(width, epsilon) {}

  void visit(auto&& each) { each("weight", weight_); }

  /// Normalises each row.
  /// @shape x [rows, width]   @shape returns as x
  /// @throws ShapeError if x has another width
  template <class Context>
  [[nodiscard]] VariableOf<Context, 2> forward(Context& context, VariableOf<Context, 2> x) const {
    return normalize(context, x, x, {}, {}).normalized;
  }

  /// Result of `add_and_normalize`: the residual stream for the next addition, and its norm for the next part.
  template <class Context>
  struct SumAndNorm {
    SequenceOf<Context> sum, normalized;
  };

  /// Computes sum = x + dropout(added) and the norm of sum, in one pass over memory.
  /// @throws ShapeError if the shapes differ or the width is not the layer's
  template <class Context>
  [[nodiscard]] SumAndNorm<Context> add_and_normalize(Context& context, SequenceOf<Context> const& x,
                                                      SequenceOf<Context> const& added, Dropout const& dropout) const {
    check_residual(x.tokens.value.extent, added.tokens.value.extent);
    auto const sum = context.template variable<2>(x.tokens.value.extent);
    auto const result = normalize(context, x.tokens, sum, added.tokens, dropout.mask(context, x.layout));
    return {x.with(result.sum), x.with(result.normalized)};
  }

 private:
  template <class Context>
  struct Result {
    VariableOf<Context, 2> sum, normalized;
  };

  /// `sum` is x itself if nothing is added.
  template <class Context>
  Result<Context> normalize(Context& context, VariableOf<Context, 2> x, VariableOf<Context, 2> sum,
                            VariableOf<Context, 2> added, kernel::RowDropout<typename Context::Space> dropout) const {
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

  /// Passes on the gradient of the sum if no layer used its norm.
  template <class Context>
  static void backward_of_sum(Context& c, VariableOf<Context, 2> x, VariableOf<Context, 2> sum,
                              VariableOf<Context, 2> added, kernel::RowDropout<typename Context::Space> dropout) {
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
};

}}}  // namespace lockstep::nn
