// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <type_traits>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/mean_squared_error.hpp>
#include <lockstep/nn/context.hpp>
#include <lockstep/nn/loss.hpp>
#include <lockstep/nn/sequence.hpp>
#include <lockstep/nn/staging.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

struct MeanSquaredErrorOptions {
  double factor = 1;  ///< on loss and gradient, not on the weight: for an auxiliary loss
};

/// Sum over the tokens' elements of (prediction - target)^2; the weight is the number of elements, so that the mean is
/// that of torch.nn.functional.mse_loss. Padding counts nothing. While recording, the gradient of the sum is left
/// beside the prediction at once: one pass serves forward and backward.
/// @shape prediction.tokens [slots, width]   @shape target [slots, width], any extents with as many numbers, outermost
/// first
/// @determinism bitwise, for any number of threads
/// @throws ShapeError when target has another number of elements
template <class Context, class Target, int Rank>
[[nodiscard]] Loss<typename Context::Space> mean_squared_error(
    Context& context, Sequence<typename Context::Scalar, typename Context::Space> const& prediction,
    TensorView<Target, Rank, typename Context::Space> target, MeanSquaredErrorOptions const& options = {}) {
  static_assert(std::is_arithmetic_v<Target>, "Lockstep: mean_squared_error takes numbers as targets");
  using Real = typename Context::Real;
  using Kernel = kernel::MeanSquaredError<typename Context::Space>;
  auto const extent = prediction.tokens.value.extent;
  expect<ShapeError>(extent[0] == prediction.layout.slots && target.size() == elements(extent), [&] {
    return "mean_squared_error: the prediction is " + to_string(extent) + " and the target " +
           to_string(target.extent) + "; each element of the prediction needs one of the target";
  });
  Extents<1> const parts{Kernel::chunks(extent[0], extent[1])};
  auto const sums = context.template temporary<double>(parts), weights = context.template temporary<double>(parts);
  Staging work(context);
  auto const gradient = work.loss_gradient(prediction.tokens);
  Kernel::template forward_backward<LossOperand<Context>, std::remove_const_t<Target>>(
      context.stream(), prediction.layout, static_cast<Real>(options.factor),
      work.read_for_loss(prediction.tokens.value), target.reshape(extent), sums, weights, {gradient.data, extent},
      gradient.write);
  return Loss<typename Context::Space>::of(context, sums, weights);
}

/// The same for one vector per row.
/// @shape prediction [rows, width]   @shape target [rows, width], or [rows] when width is 1
template <class Context, class Target, int Rank>
[[nodiscard]] Loss<typename Context::Space> mean_squared_error(Context& context,
                                                               typename Context::template Variable<2> prediction,
                                                               TensorView<Target, Rank, typename Context::Space> target,
                                                               MeanSquaredErrorOptions const& options = {}) {
  return mean_squared_error(context,
                            Sequence<typename Context::Scalar, typename Context::Space>{
                                prediction, SequenceLayout<typename Context::Space>::vectors(prediction.extent(0))},
                            target, options);
}

/// The same for a column of a batch: anything that holds the targets as `.values`.
template <class Context, class Prediction, class Column>
requires requires(Column const& column) { column.values; }
[[nodiscard]] Loss<typename Context::Space> mean_squared_error(Context& context, Prediction const& prediction,
                                                               Column const& target,
                                                               MeanSquaredErrorOptions const& options = {}) {
  return mean_squared_error(context, prediction, target.values, options);
}

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
