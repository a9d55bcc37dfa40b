// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/loss/elementwise_loss.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Options of mean_absolute_error.
struct MeanAbsoluteErrorOptions {
  double factor = 1;  ///< multiplies loss and gradient, not the weight: for an auxiliary loss
};

/// L1 loss: the sum over the elements of |prediction - target|. The weight is the number of elements; the mean equals
/// torch.nn.functional.l1_loss. Shapes, padding and errors as in elementwise_loss.
/// @shape prediction a Variable [rows, width] or a Sequence   @shape target as many numbers: a view, or a batch's
/// column; or one number for all elements
/// @determinism bitwise, for any number of threads
template <detail::IsContext Context, class Prediction, class Target>
[[nodiscard]] LossOf<Context> mean_absolute_error(Context& context, Prediction const& prediction, Target const& target,
                                                  MeanAbsoluteErrorOptions const& options = {}) {
  detail::expect_no_labels<Target>();
  return elementwise_loss(context, kernel::AbsoluteError{}, prediction, target, options.factor);
}

/// Rejects calls without a target at compile time.
template <detail::IsContext Context>
LossOf<Context> mean_absolute_error(Context&, auto const&) {
  return detail::reject_missing_target<LossOf<Context>>();
}
/// Rejects calls without the context in front at compile time.
auto mean_absolute_error(detail::NoContext auto const& first, auto const&...) {
  static_cast<void>(detail::reject_call(first));
  return Loss<HostSpace>{};
}

}}}  // namespace lockstep::nn
