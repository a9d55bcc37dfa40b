// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/loss/elementwise_loss.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Options of quantile_loss.
struct QuantileLossOptions {
  double quantile = 0.5;  ///< quantile that the prediction learns, above 0 and below 1
  double factor = 1;      ///< multiplies loss and gradient, not the weight: for an auxiliary loss
};

/// Pinball loss, whose minimum is a quantile of the target: the sum over the elements of q (target - prediction) where
/// the prediction is below the target, and of (1 - q) (prediction - target) above. The weight is the number of
/// elements; the mean equals scikit-learn's mean_pinball_loss with alpha = q, and half of mean_absolute_error at q =
/// 0.5. Shapes, padding and errors as in elementwise_loss.
/// @shape prediction a Variable [rows, width] or a Sequence   @shape target as many numbers: a view, or a batch's
/// column; or one number for all elements
/// @determinism bitwise, for any number of threads
/// @throws ConfigError unless 0 < quantile < 1
template <detail::IsContext Context, class Prediction, class Target>
[[nodiscard]] LossOf<Context> quantile_loss(Context& context, Prediction const& prediction, Target const& target,
                                            QuantileLossOptions const& options = {}) {
  detail::expect_no_labels<Target>();
  expect<ConfigError>(options.quantile > 0 && options.quantile < 1, [&] {
    return "quantile_loss: the quantile is " + shortest(options.quantile) +
           "; it must be above 0 and below 1, such as 0.9";
  });
  return elementwise_loss(context, kernel::QuantileLoss{options.quantile}, prediction, target, options.factor);
}

/// Rejects calls without a target at compile time.
template <detail::IsContext Context>
LossOf<Context> quantile_loss(Context&, auto const&) {
  return detail::reject_missing_target<LossOf<Context>>();
}
/// Rejects calls without the context in front at compile time.
auto quantile_loss(detail::NoContext auto const& first, auto const&...) {
  static_cast<void>(detail::reject_call(first));
  return Loss<HostSpace>{};
}

}}}  // namespace lockstep::nn
