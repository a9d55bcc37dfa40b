// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/loss/elementwise_loss.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Options of huber_loss.
struct HuberLossOptions {
  double delta = 1;   ///< distance from the target beyond which the loss is linear; bounds the gradient
  double factor = 1;  ///< multiplies loss and gradient, not the weight: for an auxiliary loss
};

/// Huber loss: the sum over the elements of d^2 / 2 for d = |prediction - target| up to delta, and of delta
/// (d - delta / 2) beyond. The weight is the number of elements; the mean equals torch.nn.functional.huber_loss. With
/// the factor 1 / delta it equals smooth_l1_loss with beta = delta. Shapes, padding and errors as in elementwise_loss.
/// @shape prediction a Variable [rows, width] or a Sequence   @shape target as many numbers: a view, or a batch's
/// column; or one number for all elements
/// @determinism bitwise, for any number of threads
/// @throws ConfigError for a delta that is not positive
template <detail::IsContext Context, class Prediction, class Target>
[[nodiscard]] LossOf<Context> huber_loss(Context& context, Prediction const& prediction, Target const& target,
                                         HuberLossOptions const& options = {}) {
  detail::expect_no_labels<Target>();
  expect<ConfigError>(options.delta > 0, [&] {
    return "huber_loss: delta is " + shortest(options.delta) + "; it must be positive, and 1 is usual";
  });
  return elementwise_loss(context, kernel::HuberLoss{options.delta}, prediction, target, options.factor);
}

/// Rejects calls without a target at compile time.
template <detail::IsContext Context>
LossOf<Context> huber_loss(Context&, auto const&) {
  return detail::reject_missing_target<LossOf<Context>>();
}
/// Rejects calls without the context in front at compile time.
auto huber_loss(detail::NoContext auto const& first, auto const&...) {
  static_cast<void>(detail::reject_call(first));
  return Loss<HostSpace>{};
}

}}}  // namespace lockstep::nn
