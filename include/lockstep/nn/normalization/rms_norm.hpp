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

/// Root mean square normalization: y = weight * x / sqrt(mean(x^2) + epsilon), with the mean over each row. The weights
/// start as 1.
/// @shape weight [width]
/// @determinism bitwise, for any number of threads
/// @source Zhang, Sennrich: Root Mean Square Layer Normalization (2019)
class RMSNorm : public detail::RowNorm<RMSNorm> {
 public:
  static constexpr char const* layer_name = "RMSNorm";  ///< for messages
  using RowNorm::forward;                               // for sequences, and for images

  /// @throws ConfigError unless width is at least 1 and epsilon above 0
  explicit RMSNorm(Index width, double epsilon = 1e-6) : RowNorm(width, epsilon) {}

  /// Names the parameter "weight".
  void visit(auto&& each) { each("weight", weight_); }

  /// Normalizes each row.
  /// @shape x [rows, width]   @shape returns as x
  /// @throws ShapeError if x has another width
  template <class Context>
  [[nodiscard]] VariableOf<Context, 2> forward(Context& context, VariableOf<Context, 2> x) const;

  /// Result of `add_and_normalize`: the residual stream for the next addition, and its norm for the next part.
  template <class Context>
  struct SumAndNorm {
    SequenceOf<Context> sum;         ///< residual stream, in the shape of x
    SequenceOf<Context> normalized;  ///< norm of `sum`, in the shape of x
  };

  /// Computes sum = x + dropout(added) and the norm of sum, in one pass over memory.
  /// @throws ShapeError if the shapes differ or the width is not the layer's
  template <class Context>
  [[nodiscard]] SumAndNorm<Context> add_and_normalize(Context& context, SequenceOf<Context> const& x,
                                                      SequenceOf<Context> const& added, Dropout const& dropout) const;

 private:
  template <class Context>
  struct Result {
    VariableOf<Context, 2> sum, normalized;
  };

  /// `sum` is x itself if nothing is added.
  template <class Context>
  Result<Context> normalize(Context& context, VariableOf<Context, 2> x, VariableOf<Context, 2> sum,
                            VariableOf<Context, 2> added, kernel::RowDropout<typename Context::Space> dropout) const;

  /// Passes on the gradient of the sum if no layer used its norm.
  template <class Context>
  static void backward_of_sum(Context& c, VariableOf<Context, 2> x, VariableOf<Context, 2> sum,
                              VariableOf<Context, 2> added, kernel::RowDropout<typename Context::Space> dropout);
};

}}}  // namespace lockstep::nn

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/nn/normalization/rms_norm.ipp>
#endif
