// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/nn/autograd/parameter.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/variable.hpp>
#include <lockstep/nn/detail/apply_to_rows.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn::detail {

/// Base of LayerNorm and RMSNorm, which normalize each row: the weight, the checks, and the overloads of forward that
/// apply `Norm`'s forward for matrices.
template <class Norm>
class RowNorm : RejectedCalls<2> {
 public:
  [[nodiscard]] Index width() const noexcept { return weight_.shape[0]; }

  /// Normalizes each token.
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> const& x) const {
    return x.with(self().forward(context, x.tokens));
  }
  /// Normalizes the channels of each pixel, voxel or time step.
  /// @shape x [rows, …, width]   @shape returns as x
  template <class Context, int Rank>
  requires(Rank > 2)
      [[nodiscard]] VariableOf<Context, Rank> forward(Context& context, VariableOf<Context, Rank> x) const {
    return apply_to_rows(x, [&](auto const& rows) { return self().forward(context, rows); });
  }
  /// Rejects a batch's tensor or column at compile time: the layer takes a Variable.
  template <class Context, BatchTensor Input>
  VariableOf<Context, 2> forward(Context&, Input const& x) const {
    return reject_batch_tensor<VariableOf<Context, 2>>(x);
  }
  /// Rejects calls without the context in front, or without an input, at compile time.
  using RejectedCalls<2>::forward;

 protected:
  RowNorm(Index width, double epsilon) : weight_{{width}, Initializer::constant(1)}, epsilon_(epsilon) {
    expect<ConfigError>(width >= 1 && epsilon > 0, [&] {
      return std::string(Norm::layer_name) + ": width " + std::to_string(width) + " and epsilon " + shortest(epsilon) +
             "; width must be at least 1 and epsilon above 0";
    });
  }

  /// @throws ShapeError unless the rows of x have the layer's width
  void check_width(Extents<2> x) const {
    expect<ShapeError>(x[1] == width(), [&] {
      return weight_.layer(Norm::layer_name) + ": the input is " + to_string(x) + " and weight is [" +
             std::to_string(width()) + "]; the input needs " + std::to_string(width()) + " columns";
    });
  }
  /// @throws ShapeError unless the shapes are equal
  void check_residual(Extents<2> x, Extents<2> residual) const {
    expect<ShapeError>(x == residual, [&] {
      return weight_.layer(Norm::layer_name) + ": the input is " + to_string(x) + " and the residual " +
             to_string(residual) + "; their shapes must be equal";
    });
  }

  Parameter weight_;
  double epsilon_;

 private:
  [[nodiscard]] Norm const& self() const noexcept { return static_cast<Norm const&>(*this); }
};

}}}  // namespace lockstep::nn::detail
