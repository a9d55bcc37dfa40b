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
#include <lockstep/nn/detail/apply_to_rows.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/random/dropout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Root mean square normalisation: y = weight * x / sqrt(mean(x^2) + epsilon), with the mean over each row. The weights
/// start as 1.
/// @shape weight [width]
/// @determinism bitwise, for any number of threads
/// @source Zhang, Sennrich: Root Mean Square Layer Normalization (2019)
class RMSNorm {
 public:
  /// @throws ConfigError unless width is at least 1 and epsilon above 0
  explicit RMSNorm(Index width, double epsilon = 1e-6) : weight_{{width}, Initializer::constant(1)}, epsilon_(epsilon) {
    expect<ConfigError>(width >= 1 && epsilon > 0, [&] {
      return "RMSNorm: width " + std::to_string(width) + " and epsilon " + std::to_string(epsilon) +
             "; width must be at least 1 and epsilon above 0";
    });
  }

  void visit(auto&& each) { each("weight", weight_); }

  [[nodiscard]] Index width() const noexcept { return weight_.shape[0]; }

  /// Normalises each row.
  /// @shape x [rows, width]   @shape returns as x
  /// @throws ShapeError if x has another width
  template <class Context>
  [[nodiscard]] VariableOf<Context, 2> forward(Context& context, VariableOf<Context, 2> x) const {
    return normalize(context, x, x, {}, {}).normalized;
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

  /// Result of `join`: the residual stream for the next addition, and its norm for the next part.
  template <class Context>
  struct Joined {
    SequenceOf<Context> sum, normalized;
  };

  /// Computes sum = x + dropout(added) and the norm of sum, in one pass over memory.
  /// @throws ShapeError if the shapes differ or the width is not the layer's
  template <class Context>
  [[nodiscard]] Joined<Context> join(Context& context, SequenceOf<Context> const& x, SequenceOf<Context> const& added,
                                     Dropout const& dropout) const {
    expect<ShapeError>(x.tokens.value.extent == added.tokens.value.extent, [&] {
      return weight_.layer("RMSNorm") + ": the input is " + to_string(x.tokens.value.extent) + " and the residual " +
             to_string(added.tokens.value.extent) + "; their shapes must be equal";
    });
    auto const sum = context.template variable<2>(x.tokens.value.extent);
    auto const both = normalize(context, x.tokens, sum, added.tokens, dropout.mask(context, x.layout));
    return {x.with(both.sum), x.with(both.normalized)};
  }

 private:
  template <class Context>
  struct Both {
    VariableOf<Context, 2> sum, normalized;
  };

  /// `sum` is x itself if nothing is added.
  template <class Context>
  Both<Context> normalize(Context& context, VariableOf<Context, 2> x, VariableOf<Context, 2> sum,
                          VariableOf<Context, 2> added, kernel::RowDropout<typename Context::Space> dropout) const {
    using Real = typename Context::Real;
    using Kernel = kernel::RMSNorm<typename Context::Space>;
    check(x.value.extent);
    bool const joins = added.value.data != nullptr;
    auto const y = context.template variable<2>(x.value.extent);
    TensorView<Real, 1, typename Context::Space> reciprocals;
    if (context.recording()) reciprocals = context.template temporary<Real>(Extents<1>{x.extent(0)});
    Staging work(context);
    Kernel::template forward<Operand<Context>>(
        context.stream(), work.read(x.value), {.value = work.read(added.value), .dropout = dropout},
        context.template value<1>(weight_), static_cast<Real>(epsilon_),
        work.write(joins ? sum.value : typename Context::template View<2>{}), reciprocals, work.write(y.value));
    if (joins) context.on_backward(sum, std::tuple{}, [=](Context& c) { pass_on(c, x, sum, added, dropout); });
    context.on_backward(y, std::tie(weight_), [=, this](Context& c) {
      // This closure also passes on gradients that flow into the sum from elsewhere, so the sum's own closure has
      // nothing left to do.
      Staging back(c);
      TensorView<Operand<Context> const, 2, typename Context::Space> beside;
      if (joins && sum.slot->data) {
        beside = back.read(sum.gradient());
        sum.slot->data = nullptr;
      }
      auto const dx = back.gradient(x), dadded = back.gradient(added);
      auto const dweight = c.gradient(weight_);
      auto const partial = c.template temporary<Real>(Extents<1>{Kernel::partial_elements(x.extent(0), width())});
      Kernel::template backward<Operand<Context>>(c.stream(), back.read(y.gradient()), back.read(c.saved_value(sum)),
                                                  reciprocals, beside, dropout, c.template value<1>(weight_),
                                                  {dx.data, x.value.extent}, dx.write, {dadded.data, x.value.extent},
                                                  dadded.write, {dweight.data, {width()}}, dweight.write, partial.data);
    });
    return {sum, y};
  }

  /// Passes on the gradient of the sum if no layer used its norm.
  template <class Context>
  static void pass_on(Context& c, VariableOf<Context, 2> x, VariableOf<Context, 2> sum, VariableOf<Context, 2> added,
                      kernel::RowDropout<typename Context::Space> dropout) {
    using Operand = nn::Operand<Context>;
    Extents<1> const flat{sum.value.size()};
    Staging back(c);
    auto const dsum = back.read(sum.gradient());
    auto const copy = [&](auto const& target) {
      kernel::BinaryOperation<typename Context::Space>::template backward<kernel::First, Operand>(
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

  void check(Extents<2> x) const {
    expect<ShapeError>(x[1] == width(), [&] {
      return weight_.layer("RMSNorm") + ": the input is " + to_string(x) + " and weight is [" +
             std::to_string(width()) + "]; the input needs " + std::to_string(width()) + " columns";
    });
  }

  Parameter weight_;
  double epsilon_;
};

}}}  // namespace lockstep::nn
