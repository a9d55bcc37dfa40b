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

/// Layer normalization: y = weight * (x - mean) / sqrt(variance + epsilon) + bias, with mean and variance over each
/// row. The residual form normalizes x + dropout(added) in the same pass. The weights start as 1, the bias as 0.
/// @shape weight, bias [width]
/// @determinism bitwise, for any number of threads
/// @source Ba, Kiros, Hinton: Layer Normalization (2016)
class LayerNorm : public detail::RowNorm<LayerNorm> {
 public:
  static constexpr char const* layer_name = "LayerNorm";  ///< for messages
  using RowNorm::forward;                                 // for sequences, and for images

  /// @throws ConfigError unless width is at least 1 and epsilon above 0
  explicit LayerNorm(Index width, double epsilon = 1e-5)
      : RowNorm(width, epsilon), bias_{{width}, Initializer::constant(0)} {}

  /// Names "weight" and "bias".
  void visit(auto&& each) {
    each("weight", weight_);
    each("bias", bias_);
  }

  /// Normalizes each row.
  /// @shape x [rows, width]   @shape returns as x
  /// @throws ShapeError if x has another width
  template <class Context>
  [[nodiscard]] VariableOf<Context, 2> forward(Context& context, VariableOf<Context, 2> x) const;

  /// Returns norm(x + added).
  /// @shape x, added [rows, width]
  /// @throws ShapeError if the shapes differ or the width is not the layer's
  template <class Context>
  [[nodiscard]] VariableOf<Context, 2> forward(Context& context, VariableOf<Context, 2> x,
                                               VariableOf<Context, 2> added) const;

  /// Returns norm(x + dropout(added)). For 16-bit activations the sum is stored rounded, but its moments are those
  /// before rounding. The gradient of a row that deviates from its mean by less than the rounding is therefore not
  /// exact.
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward(Context& context, SequenceOf<Context> const& x,
                                            SequenceOf<Context> const& added, Dropout const& dropout) const;

  /// Returns norm(x + dropout(added)); the sum overwrites `added`, which no other layer and no backward may read.
  template <class Context>
  [[nodiscard]] SequenceOf<Context> forward_in_place(Context& context, SequenceOf<Context> const& x,
                                                     SequenceOf<Context> const& added, Dropout const& dropout) const;

 private:
  /// @param sum memory for x + added; null allocates it
  template <class Context>
  VariableOf<Context, 2> normalize(Context& context, VariableOf<Context, 2> x, VariableOf<Context, 2> added,
                                   kernel::RowDropout<typename Context::Space> dropout,
                                   typename Context::template View<2> sum = {}) const;

  /// Recomputes y from the sum that backward keeps.
  template <class Context>
  void recompute_output(Context& c, typename Context::template View<2> sum, typename Context::template View<2> y) const;

  Parameter bias_;
};

}}}  // namespace lockstep::nn

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/nn/normalization/layer_norm.ipp>
#endif
